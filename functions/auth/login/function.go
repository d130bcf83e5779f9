// Package login sends a browser to the issuer to sign in.
package login

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/auth/login"
	"github.com/littoral-project/littoral/shared/function"
)

// Spec declares the function.
var Spec = function.Spec{
	// Who signs in has no token yet.
	Routes:    []function.Route{{Pattern: "GET /auth/login", Role: auth.Open}},
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

// Handle redirects to the issuer. The parameter return is the path to go on to afterwards.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	q := function.NewQuery(r, "return")
	back := q.Text("return")
	if err := q.Err(); err != nil {
		return err
	}
	return f.party.Begin(w, r, back)
}
