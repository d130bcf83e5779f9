// Package profilelist lists the profiles that nodes are scored by.
package profilelist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/awareness"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{Routes: []function.Route{{Pattern: "GET /pdlc/profiles", Role: auth.Viewer}}}

// Function is the operation with its store.
type Function struct {
	db       *store.DB
	settings awareness.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.settings)
}

// Handle answers those that are always there and those that were added.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	list, err := awareness.Profiles(r.Context(), f.db, f.settings.Printed)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, list)
}
