// Package historylist lists what happened, with causes.
package historylist

import (
	"math"
	"net/http"
	"strings"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []string{"GET /jobmanager/history"},
	Role:   auth.Viewer,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers entries after the id ?after=, oldest first, or without it the newest ones; ?app= narrows to one
// application, ?event= to one kind of event or several, with commas between.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	query := function.NewQuery(r, "app", "after", "limit", "event")
	app := query.ID("app")
	after := query.Int("after", -1, 0, math.MaxInt64)
	limit := int(query.Int("limit", function.DefaultLimit, 1, function.MaxLimit))
	var kinds []string
	if text := query.Text("event"); text != "" {
		kinds = strings.Split(text, ",")
	}
	if err := query.Err(); err != nil {
		return err
	}
	var entries []history.Entry
	var err error
	if after < 0 {
		entries, err = history.Tail(r.Context(), f.db, app, limit, kinds...)
	} else {
		entries, err = history.After(r.Context(), f.db, app, after, limit, kinds...)
	}
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, entries)
}
