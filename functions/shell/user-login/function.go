// Package userlogin gives the ICOS shell a token for a name and a password.
package userlogin

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icosshell"
	"github.com/littoral-project/littoral/shared/problem"
)

// Spec declares the function.
var Spec = function.Spec{
	// Who signs in has no token yet.
	Routes:    []function.Route{{Pattern: "GET /api/v3/user/login", Role: auth.Open}},
	Needs:     []function.Need{function.SignIn}, // refresh tokens are sent as api_key
	Storeless: true,
}

// Function is the operation with its setting.
type Function struct {
	icosshell.Callers

	config config
}

type config struct {
	On bool `envconfig:"SHELL_QUERY_LOGIN" default:"false"`
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	callers, err := icosshell.NewCallers(env)
	f := &Function{Callers: callers}
	return f, errors.Join(err, env.Config(&f.config))
}

// Handle answers the refresh token, which the shell sends as api_key, as a JSON text. Passwords in addresses end up in
// logs, so only a site that says so takes them.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	if !f.config.On {
		return problem.New(problem.NotImplemented, "this site takes no passwords in addresses (SHELL_QUERY_LOGIN): "+
			"sign in with the device flow, as %q does, and send the refresh token as api_key or the access token as a bearer", "littoral login")
	}
	w.Header().Set("Cache-Control", "no-store")
	q := function.NewQuery(r, "username", "password")
	name, password := q.Text("username"), q.Text("password")
	if err := q.Err(); err != nil {
		return err
	}
	token, err := f.Party().Password(r.Context(), r, name, password)
	if problem.KindOf(err) == problem.Unauthenticated {
		return problem.Wrap(problem.Malformed, err, "the issuer knows nobody by this name and password") // 400, says the contract
	}
	if err != nil {
		return err
	}
	w.Header().Set("X-Expires-After", token.Expiry.UTC().Format(time.RFC3339))
	return function.WriteJSON(w, http.StatusOK, cmp.Or(token.RefreshToken, token.AccessToken))
}
