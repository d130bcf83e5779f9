// Package appcreate takes a CodecoApp, stores the application that runs it and announces it.
package appcreate

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/acm"
	"github.com/littoral-project/littoral/shared/acm/intake"
	"github.com/littoral-project/littoral/shared/acm/serve"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:     []function.Route{{Pattern: "POST /acm/apps", Role: auth.Operator}},
	Emits:      []string{events.ApplicationSubmitted, events.ApplicationFirst},
	PrewakeFor: []string{events.ApplicationSubmitted},
}

// Function is the operation with its store and settings.
type Function struct {
	db     *store.DB
	intake intake.Intake
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	in, err := intake.New(env)
	return &Function{env.DB, in}, err
}

// Handle answers 201 with the CodecoApp at once; its services are placed by the reaction to the event.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	text, err := function.Document(r)
	if err != nil {
		return err
	}
	document, err := f.intake.Read(text)
	if err != nil {
		return err
	}
	var app *acm.App
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		app, err = acm.Create(ctx, tx, document, f.intake.Settings(ctx))
		return err
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/acm/apps/"+app.Key.String())
	return serve.Answer(w, r, f.db, http.StatusCreated, app)
}
