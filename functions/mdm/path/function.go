// Package path answers what surrounds an entity.
package path

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /mdm/graph/path/{edf_id}", Role: auth.Viewer, Aliases: []string{"GET /graph/path/{edf_id}"}}},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the entities that are at most ?hops= away, and the relations that lead to them.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	query := function.NewQuery(r, "hops")
	hops := query.Int("hops", mdm.DefaultHops, 0, mdm.MaxHops)
	if err := query.Err(); err != nil {
		return err
	}
	id, err := function.PathID(r, "edf_id")
	if err != nil {
		return err
	}
	around, err := mdm.Around(r.Context(), f.db, id, int(hops))
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, around)
}
