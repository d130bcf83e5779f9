// Package refresh gives a signed-in browser fresh tokens without a visit to the issuer.
package refresh

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/auth/login"
	"github.com/littoral-project/littoral/shared/function"
)

// Spec declares the function.
var Spec = function.Spec{
	// The token may have expired; the session's own refresh token counts.
	Routes:    []function.Route{{Pattern: "POST /auth/refresh", Role: auth.Open}},
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

// Handle answers 204 with a new cookie.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	if err := f.party.Refresh(w, r); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
