// Package userlogout signs the user of the ICOS shell out.
package userlogout

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icosshell"
)

// Spec declares the function.
var Spec = function.Spec{
	// The token that is to end is sent with it.
	Routes:    []function.Route{{Pattern: "GET /api/v3/user/logout", Role: auth.Open}},
	Needs:     []function.Need{function.SignIn}, // refresh tokens are sent as api_key
	Storeless: true,
}

// Function is the operation with the issuer's client.
type Function struct{ icosshell.Callers }

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	callers, err := icosshell.NewCallers(env)
	return &Function{callers}, err
}

// Handle revokes the refresh token that is sent as api_key. Sessions of browsers end at /auth/logout, by POST: a page of
// others can make a browser send a GET.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	if key := r.Header.Get(icosshell.KeyHeader); key != "" {
		if err := f.Party().Revoke(r.Context(), r, key); err != nil {
			return err
		}
	}
	w.WriteHeader(http.StatusOK)
	return nil
}
