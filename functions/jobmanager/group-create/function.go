// Package groupcreate takes an application descriptor, stores the application and announces it.
package groupcreate

import (
	"context"
	"errors"
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icoswire/jobgroup"
	"github.com/littoral-project/littoral/shared/policy/admit"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/submission"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:     []function.Route{{Pattern: "POST /jobmanager/groups", Role: auth.Operator}},
	Emits:      []string{events.ApplicationSubmitted, events.ApplicationFirst},
	PrewakeFor: []string{events.ApplicationSubmitted},
	Class:      function.Descriptor,
}

// Function is the operation with its settings and store.
type Function struct {
	db       *store.DB
	settings application.Settings
	admit    admit.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, errors.Join(env.Config(&f.settings), env.Config(&f.admit))
}

// Handle answers 201 with the JobGroup at once; its components are placed by the reaction to the event. With
// If-None-Match, no application may have the name yet; with ?strict=true, the descriptor may have no warnings.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	query := function.NewQuery(r, "strict")
	strict := query.Bool("strict")
	if err := query.Err(); err != nil {
		return err
	}
	document, err := function.Document(r)
	if err != nil {
		return err
	}
	key := r.Header.Get("Idempotency-Key")
	if len(key) > 255 {
		return problem.New(problem.Malformed, "the Idempotency-Key has more than 255 characters")
	}
	first, err := function.IfNone(r)
	if err != nil {
		return err
	}
	parsed, err := submission.Read(r.Context(), f.admit, document, strict) // before the transaction, which holds a connection
	if err != nil {
		return err
	}
	var app *application.Application
	var fresh bool
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		app, fresh, err = application.Submit(ctx, tx, application.Submission{
			Document: document, Parsed: parsed, Caller: auth.From(ctx).Subject, IdempotencyKey: key, First: first,
			LostAfter: f.settings.LostAfter,
		})
		return err
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/jobmanager/groups/"+app.ID.String())
	if !fresh {
		w.Header().Set("Idempotent-Replay", "true")
	}
	return function.WriteJSON(w, http.StatusCreated, jobgroup.Of(app))
}
