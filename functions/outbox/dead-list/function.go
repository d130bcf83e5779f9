// Package deadlist lists the dead letters: events that no function took in the end.
package deadlist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/deadletter"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /events/dead", Role: auth.Viewer}},
	Class:  function.Medium, // a page's events are in memory several times
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers those that wait to be replayed, oldest first; with ?all=true the replayed ones too.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	query := function.NewQuery(r, "all", "limit", "cursor")
	all := query.OneOf("all", "true", "false") == "true"
	page := query.Page()
	if err := query.Err(); err != nil {
		return err
	}
	letters, cut, err := deadletter.List(r.Context(), f.db, all, page.After.At, page.After.ID, page.Limit)
	if err != nil {
		return err
	}
	return function.WritePage(w, r, page, letters, cut, func(l deadletter.Letter) paging.Cursor {
		return paging.Cursor{At: l.At, ID: l.ID}
	})
}
