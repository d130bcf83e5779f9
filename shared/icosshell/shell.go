// Package icosshell is what the operations of the ICOS shell's backend (/api/v3) have in common: callers who send a refresh
// token in the header api_key, and descriptors that are wrapped in JSON (shared/docs/contracts.md §11).
package icosshell

import (
	"encoding/json"
	"mime"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/auth/login"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
)

// KeyHeader holds a refresh token.
const KeyHeader = "api_key"

// Callers knows who sends a refresh token: an operation embeds it. The token is exchanged at each call, since nothing of
// it is kept, so the issuer must let it be used again.
type Callers struct {
	party    *login.Party
	verifier *auth.Verifier
}

// NewCallers reads the client's settings.
func NewCallers(env *function.Env) (Callers, error) {
	var c login.Config
	if err := env.Config(&c); err != nil {
		return Callers{}, err
	}
	return Callers{login.New(c, env.HTTP, env.Auth), env.Auth}, nil
}

// Identify exchanges the refresh token for an access token, which is verified like any other.
func (c Callers) Identify(r *http.Request) (caller auth.Principal, sent bool, err error) {
	key := r.Header.Get(KeyHeader)
	if key == "" || r.Header.Get("Authorization") != "" {
		return caller, false, nil
	}
	token, err := c.party.Exchange(r.Context(), r, key)
	if problem.KindOf(err) == problem.NotFound {
		return caller, true, problem.Wrap(problem.Unauthenticated, err, "no refresh tokens are taken here: LOGIN_CLIENT_ID or SESSION_KEY is not set")
	}
	if err != nil {
		return caller, true, err
	}
	caller, err = c.verifier.Verify(r.Context(), token.AccessToken)
	return caller, true, err
}

// Party is the issuer's client.
func (c Callers) Party() *login.Party { return c.party }

// Document reads a descriptor: as it is, or as {"content": "..."}, which the published client sends as JSON.
func Document(r *http.Request) ([]byte, error) {
	body, err := function.Document(r)
	if err != nil {
		return nil, err
	}
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" && media != "" {
		return body, nil
	}
	var wrapped map[string]json.RawMessage
	if json.Unmarshal(body, &wrapped) != nil || len(wrapped) != 1 || wrapped["content"] == nil {
		return body, nil
	}
	var content string
	if err := json.Unmarshal(wrapped["content"], &content); err != nil || content == "" {
		return nil, &problem.Error{
			Kind: problem.Malformed, Detail: "the body is not a descriptor",
			Fields: []problem.Field{{Path: "content", Detail: "is not the text of a descriptor"}},
		}
	}
	return []byte(content), nil
}
