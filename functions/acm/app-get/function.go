// Package appget answers a CodecoApp with its status.
package appget

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/acm"
	"github.com/littoral-project/littoral/shared/acm/serve"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /acm/apps/{namespace}/{name}", Role: auth.Viewer}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the CodecoApp.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	app, err := acm.Get(r.Context(), f.db, serve.Key(r))
	if err != nil {
		return err
	}
	return serve.Answer(w, r, f.db, http.StatusOK, app)
}
