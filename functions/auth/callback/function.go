// Package callback takes a browser back from the issuer and gives it a session.
package callback

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/auth/login"
	"github.com/littoral-project/littoral/shared/function"
)

// Spec declares the function.
var Spec = function.Spec{
	// The issuer's code stands for the token.
	Routes:    []function.Route{{Pattern: "GET /auth/callback", Role: auth.Open}},
	Storeless: true,
	Needs:     []function.Need{function.SignIn},
}

// Function is the operation with the issuer's client.
type Function struct{ party *login.Party }

// New reads the client's settings.
func New(env *function.Env) (*Function, error) {
	var c login.Config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	return &Function{login.New(c, env.HTTP, env.Auth)}, nil
}

// Handle exchanges the issuer's code for tokens, seals them in the cookie and redirects to where the browser wanted to be.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error { return f.party.Finish(w, r) }
