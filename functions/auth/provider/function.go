// Package provider tells programs which issuer signs their users in.
package provider

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/auth/login"
	"github.com/littoral-project/littoral/shared/function"
)

// Spec declares the function.
var Spec = function.Spec{
	// It is what a program has to know before it can get a token, and no secret.
	Routes:    []function.Route{{Pattern: "GET /auth/provider", Role: auth.Open}},
	Storeless: true,
	Needs:     []function.Need{function.SignIn},
}

// Function is the operation with its answer.
type Function struct{ answer provider }

// provider is the answer.
type provider struct {
	Issuer   string   `json:"issuer"`
	ClientID string   `json:"clientId"` // of a public client, for the command line
	Audience string   `json:"audience"` // to ask for, where the issuer lets its clients ask
	Scopes   []string `json:"scopes"`
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	var c login.Config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	scopes := c.CLIScopes
	if len(scopes) == 0 {
		scopes = c.Scopes
	}
	return &Function{provider{env.Auth.Issuer(), c.CLI, env.Auth.Audience(), scopes}}, nil
}

// Handle answers the issuer and the client.
func (f *Function) Handle(w http.ResponseWriter, _ *http.Request) error {
	return function.WriteJSON(w, http.StatusOK, f.answer)
}
