// Package objectget answers an object of SWM with its status.
package objectget

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/serve"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /swm/objects/{kind}/{namespace}/{name}", Role: auth.Viewer}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the object.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	key, err := serve.Key(r)
	if err != nil {
		return err
	}
	return serve.Answer(w, r, f.db, http.StatusOK, key)
}
