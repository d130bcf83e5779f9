// Package appupdate gives a CodecoApp another document; only what differs is touched.
package appupdate

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/acm"
	"github.com/littoral-project/littoral/shared/acm/intake"
	"github.com/littoral-project/littoral/shared/acm/serve"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:     []function.Route{{Pattern: "PUT /acm/apps/{namespace}/{name}", Role: auth.Operator}},
	Emits:      []string{events.ApplicationUpdated, events.JobReady},
	PrewakeFor: []string{events.ApplicationUpdated},
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

// Handle answers the CodecoApp with its new document, whose name must be that of the path.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	text, err := function.Document(r)
	if err != nil {
		return err
	}
	document, err := f.intake.Read(text)
	if err != nil {
		return err
	}
	if key := serve.Key(r); document.Key != key {
		return problem.New(problem.Conflict, "the document is that of %s, the path names %s", document.Key, key)
	}
	var app *acm.App
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		app, err = acm.Replace(ctx, tx, document, f.intake.Settings(ctx))
		return err
	})
	if err != nil {
		return err
	}
	return serve.Answer(w, r, f.db, http.StatusOK, app)
}
