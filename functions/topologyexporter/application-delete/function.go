// Package applicationdelete tells the components of an application that they run nowhere, and forgets it.
package applicationdelete

import (
	"cmp"
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/exporter"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{
		{Pattern: "DELETE /applications/{app_instance}", Role: auth.Operator},
		{Pattern: "DELETE /deployment/{app_instance}", Role: auth.Operator}, // of the first design
	},
	Emits: []string{events.TopologyPublished},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle removes a registration. One of an application of ours comes back with the next event about it.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	instance := r.PathValue("app_instance")
	var found bool
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		found, err = exporter.Unregister(ctx, tx, instance)
		return err
	})
	switch {
	case err != nil:
		return store.Classify(err)
	case !found:
		return problem.New(problem.NotFound, "no application %q is registered", cmp.Or(instance, "?"))
	}
	return function.WriteJSON(w, http.StatusOK, nil)
}
