// Package entityfind finds entities of a type by their attributes.
package entityfind

import (
	"math"
	"net/http"
	"strconv"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "POST /mdm/graph/entity/type/{entity_type}", Role: auth.Viewer, Aliases: []string{"POST /graph/entity/type/{entity_type}"}}},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the entities that the filter in the body wants. A Link leads to those after ?limit=.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	query := function.NewQuery(r, "after", "limit")
	after := query.Int("after", 0, 0, math.MaxInt64)
	limit := int(query.Int("limit", paging.DefaultLimit, 1, paging.MaxLimit))
	if err := query.Err(); err != nil {
		return err
	}
	kind, err := mdm.PathName(r.PathValue("entity_type"))
	if err != nil {
		return err
	}
	body, err := function.Body(r)
	if err != nil {
		return err
	}
	filter, err := mdm.ParseFilter(body)
	if err != nil {
		return err
	}
	list, cut, err := mdm.Find(r.Context(), f.db, kind, filter, after, limit)
	if err != nil {
		return err
	}
	if len(list) > 0 && (cut || len(list) == limit) {
		function.Link(w, r, "next", "after", strconv.FormatInt(list[len(list)-1].ID, 10))
	}
	return function.WriteJSON(w, http.StatusOK, list)
}
