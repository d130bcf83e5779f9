// Package objectput takes an object of SWM: a group, an application of one, or a part of a network.
package objectput

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
	Routes: []function.Route{{Pattern: "PUT /swm/objects/{kind}/{namespace}/{name}", Role: auth.Operator}},
	Emits: []string{
		events.ApplicationSubmitted, events.ApplicationFirst, events.ApplicationUpdated, events.ApplicationStopped,
		events.ApplicationDeleted, events.JobReady, events.TopologyChanged,
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

// Handle answers the object as it is stored. A group whose members are there is placed by the reaction to the event.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	key, err := serve.Key(r)
	if err != nil {
		return err
	}
	body, err := function.Document(r)
	if err != nil {
		return err
	}
	object, err := groups.Read(key, body)
	if err != nil {
		return err
	}
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		return groups.Put(ctx, tx, object, f.options.Of(ctx))
	})
	if err != nil {
		return err
	}
	return serve.Answer(w, r, f.db, http.StatusOK, key)
}
