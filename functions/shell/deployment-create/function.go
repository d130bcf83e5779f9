// Package deploymentcreate takes a descriptor from the ICOS shell.
package deploymentcreate

import (
	"context"
	"errors"
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icosshell"
	"github.com/littoral-project/littoral/shared/icoswire/jobgroup"
	"github.com/littoral-project/littoral/shared/policy/admit"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/submission"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:     []function.Route{{Pattern: "POST /api/v3/deployment/{$}", Role: auth.Operator, Aliases: []string{"POST /api/v3/deployment"}}},
	Needs:      []function.Need{function.SignIn}, // refresh tokens are sent as api_key
	Emits:      []string{events.ApplicationSubmitted, events.ApplicationFirst},
	PrewakeFor: []string{events.ApplicationSubmitted},
	Class:      function.Descriptor,
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

// Handle answers 201 with the JobGroup at once; its components are placed by the reaction to the event.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	document, err := icosshell.Document(r)
	if err != nil {
		return err
	}
	parsed, err := submission.Read(r.Context(), f.admit, document, false) // before the transaction, which holds a connection
	if err != nil {
		return err
	}
	var app *application.Application
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		app, _, err = application.Submit(ctx, tx, application.Submission{
			Document: document, Parsed: parsed, Caller: auth.From(ctx).Subject, LostAfter: f.settings.LostAfter,
		})
		return err
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v3/deployment/"+app.ID.String())
	return function.WriteJSON(w, http.StatusCreated, jobgroup.Of(app))
}
