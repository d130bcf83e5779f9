// Package logout ends the session of a browser.
package logout

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/auth/login"
	"github.com/littoral-project/littoral/shared/function"
)

// Spec declares the function.
var Spec = function.Spec{
	// Whoever has no session may end none; the token may have expired.
	Routes:    []function.Route{{Pattern: "POST /auth/logout", Role: auth.Open}},
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

// left is the answer.
type left struct {
	Location string `json:"location"` // where the browser is to go, so that the issuer forgets it too
}

// Handle takes the cookie back and answers where the browser is to go.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	to, err := f.party.End(w, r)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, left{to})
}
