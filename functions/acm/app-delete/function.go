// Package appdelete deletes a CodecoApp.
package appdelete

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/acm"
	"github.com/littoral-project/littoral/shared/acm/serve"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "DELETE /acm/apps/{namespace}/{name}", Role: auth.Operator}},
	Emits:  []string{events.ApplicationDeleted, events.ApplicationStopped, events.JobReady},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers 202 with the CodecoApp, which is gone when everything that runs of it is; and 200 when it is gone already.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var app *acm.App
	var gone bool
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		app, gone, err = acm.Delete(ctx, tx, serve.Key(r))
		return err
	})
	if err != nil {
		return err
	}
	status := http.StatusAccepted
	if gone {
		status = http.StatusOK
	}
	return serve.Answer(w, r, f.db, status, app)
}
