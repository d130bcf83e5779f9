// Package groupstop removes what runs of an application and keeps the application.
package groupstop

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []string{"PUT /jobmanager/groups/stop/{group_uuid}", "PUT /jobmanager/groups/undeploy/{group_uuid}"},
	Role:   auth.Operator,
	Emits:  []string{events.ApplicationStopped, events.JobReady},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the JobGroup as it is after the request; asking twice changes nothing more.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "group_uuid")
	if err != nil {
		return err
	}
	var app *application.Application
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		app, err = application.Stop(ctx, tx, id)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, app)
}
