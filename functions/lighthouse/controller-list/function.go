// Package controllerlist lists the controllers that are there.
package controllerlist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/lighthouse"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	// A client looks here before it knows where to sign in, and the published one sends no token.
	Routes: []function.Route{{Pattern: "GET /api/v3/controller/{$}", Role: auth.Open, Aliases: []string{"GET /api/v3/controller"}}},
}

// Function is the operation with its settings and store.
type Function struct {
	db     *store.DB
	config lighthouse.Config
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.config)
}

// Handle answers the controllers, and 204 when there are none.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	found, err := lighthouse.Alive(r.Context(), f.db, f.config.Timeout)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return function.WriteJSON(w, http.StatusOK, found)
}
