// Package objectdelete forgets an object of SWM.
package objectdelete

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/groups"
	"github.com/littoral-project/littoral/shared/swm/serve"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "DELETE /swm/objects/{kind}/{namespace}/{name}", Role: auth.Operator}},
	Emits: []string{
		events.ApplicationUpdated, events.ApplicationStopped, events.ApplicationDeleted, events.JobReady, events.TopologyChanged,
		events.ApplicationSubmitted, events.ApplicationFirst,
	},
}

// Function is the operation with its store and settings.
type Function struct {
	db      *store.DB
	options serve.Options
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.options)
}

// Handle answers 204. What runs of a group that is gone, or has lost its last member, is removed.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	key, err := serve.Key(r)
	if err != nil {
		return err
	}
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		return groups.Delete(ctx, tx, key, f.options.Of(ctx))
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
