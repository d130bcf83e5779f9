// Package nodedrain closes a node and has its components moved elsewhere.
package nodedrain

import (
	"context"
	"net/http"
	"time"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/cordon"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:     []function.Route{{Pattern: "PUT /matchmaker/nodes/{cluster}/{node}/drain", Role: auth.Operator}},
	Emits:      []string{events.NodeDrained},
	PrewakeFor: []string{events.NodeDrained},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the cordon; the components move afterwards, those that have another place. With ?deadline=5m those that
// have none leave after that time all the same, and wait for a place.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	query := function.NewQuery(r, "deadline")
	var deadline *time.Time
	if text := query.Text("deadline"); text != "" {
		after, err := time.ParseDuration(text)
		if err != nil || after < 0 {
			query.Fault("deadline", "%q is not a duration such as 5m", text)
		}
		at := time.Now().Add(after)
		deadline = &at
	}
	if err := query.Err(); err != nil {
		return err
	}
	var set *cordon.Cordon
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		set, err = cordon.Set(ctx, tx, cordon.Cordon{
			Cluster: r.PathValue("cluster"), Node: r.PathValue("node"), Drain: true, Deadline: deadline,
			Author: auth.From(ctx).Subject,
		})
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, set)
}
