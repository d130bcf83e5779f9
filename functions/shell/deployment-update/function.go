// Package deploymentupdate takes a changed descriptor from the ICOS shell.
package deploymentupdate

import (
	"context"
	"errors"
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icosshell"
	"github.com/littoral-project/littoral/shared/policy/admit"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:     []function.Route{{Pattern: "PUT /api/v3/deployment/{deployment_id}", Role: auth.Operator}},
	Needs:      []function.Need{function.SignIn}, // refresh tokens are sent as api_key
	Emits:      []string{events.ApplicationUpdated, events.JobReady},
	PrewakeFor: []string{events.ApplicationUpdated},
	Memory:     "128Mi", // it carries the parser of PromQL
}

// Function is the operation with its settings and store.
type Function struct {
	icosshell.Callers

	db       *store.DB
	settings application.Settings
	admit    admit.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	callers, err := icosshell.NewCallers(env)
	f := &Function{Callers: callers, db: env.DB}
	return f, errors.Join(err, env.Config(&f.settings), env.Config(&f.admit))
}

// Handle takes a descriptor for the application in the path, and answers the JobGroup after the change.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "deployment_id")
	if err != nil {
		return err
	}
	document, err := icosshell.Document(r)
	if err != nil {
		return err
	}
	change, err := application.ReadChange(document, func(document []byte) (*appmodel.Application, error) {
		return f.admit.Application(document, false)
	}) // before the transaction, which holds a connection
	if err != nil {
		return err
	}
	var app *application.Application
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		app, err = change.Put(ctx, tx, &id, etag.Match{}, f.settings.LostAfter)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, app)
}
