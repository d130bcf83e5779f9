// Package modellist lists the trained models.
package modellist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{Routes: []function.Route{{Pattern: "GET /metricsexport/models", Role: auth.Viewer}}}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the models, of one name if it is given, the newest of each first.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	q := function.NewQuery(r, "model")
	name := q.Text("model")
	if err := q.Err(); err != nil {
		return err
	}
	list, err := metricsexport.ListModels(r.Context(), f.db, name)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, list)
}
