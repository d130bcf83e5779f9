// Package session tells a caller who he is.
package session

import (
	"net/http"
	"time"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/auth/login"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
)

// Spec declares the function.
var Spec = function.Spec{
	// Somebody who is not signed in is told so, and where to sign in.
	Routes:    []function.Route{{Pattern: "GET /auth/session", Role: auth.Open}},
	Storeless: true,
	Needs:     []function.Need{function.SignIn},
}

// Function is the operation with what it knows callers by.
type Function struct {
	verifier *auth.Verifier
	party    *login.Party
}

// New reads the client's settings.
func New(env *function.Env) (*Function, error) {
	var c login.Config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	return &Function{env.Auth, login.New(c, env.HTTP, env.Auth)}, nil
}

// session is the answer.
type session struct {
	SignedIn bool        `json:"signedIn"`
	Refused  string      `json:"refused,omitempty"` // why what was sent is not taken
	Subject  string      `json:"subject,omitempty"`
	Name     string      `json:"name,omitempty"`
	Roles    []auth.Role `json:"roles,omitempty"`
	Agent    string      `json:"agent,omitempty"` // may act only as this one
	Expires  *time.Time  `json:"expires,omitempty"`
	Issuer   string      `json:"issuer,omitempty"`
	Cookie   bool        `json:"cookie,omitempty"` // signed in by a cookie, and can be refreshed
	Login    string      `json:"login,omitempty"`  // where a browser signs in; nowhere when it cannot
}

// Handle answers who the token or the cookie is of.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	var s session
	if f.party.Offered() {
		s.Login = login.LoginPath
	}
	if !f.verifier.Carries(r) {
		return function.WriteJSON(w, http.StatusOK, s)
	}
	_, signedIn := f.verifier.Sessions().Of(r)
	s.Cookie = signedIn && r.Header.Get("Authorization") == ""
	token, err := f.verifier.Sent(r)
	var who auth.Principal
	if err == nil {
		who, err = f.verifier.Verify(r.Context(), token)
	}
	if err != nil && problem.KindOf(err) == problem.Unauthenticated {
		s.Refused = problem.Of(err, "").Detail
		return function.WriteJSON(w, http.StatusOK, s)
	}
	if err != nil {
		return err
	}
	s.SignedIn, s.Subject, s.Name, s.Roles, s.Agent, s.Issuer = true, who.Subject, who.Name, who.Roles, who.AgentID, f.verifier.Issuer()
	if until := auth.Expiry(token); !until.IsZero() {
		s.Expires = &until
	}
	return function.WriteJSON(w, http.StatusOK, s)
}
