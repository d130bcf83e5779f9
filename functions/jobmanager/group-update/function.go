// Package groupupdate gives an application a new descriptor; only what differs is touched.
package groupupdate

import (
	"context"
	"errors"
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/admit"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{
		{Pattern: "PUT /jobmanager/groups", Role: auth.Operator},
		{Pattern: "PUT /jobmanager/groups/{group_uuid}", Role: auth.Operator},
	},
	Emits:      []string{events.ApplicationUpdated, events.JobReady},
	PrewakeFor: []string{events.ApplicationUpdated},
	Memory:     "128Mi", // it carries the parser of PromQL
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

// Handle takes a descriptor, for the application in the path, in the query (?id=) or else the only one of its name; or
// a JobGroup as GET answers it, with changed objects in its jobs. With If-Match, the application must be in a version
// that the header names. With ?strict=true, a descriptor may have no warnings.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	body, err := function.Document(r)
	if err != nil {
		return err
	}
	query := function.NewQuery(r, "id", "strict")
	id, strict := query.ID("id"), query.Bool("strict")
	if err := query.Err(); err != nil {
		return err
	}
	if r.PathValue("group_uuid") != "" {
		given, err := function.PathID(r, "group_uuid")
		if err != nil {
			return err
		}
		id = &given
	}
	seen, err := function.IfMatch(r)
	if err != nil {
		return err
	}
	change, err := application.ReadChange(body, func(document []byte) (*appmodel.Application, error) {
		return f.admit.Application(document, strict)
	}) // before the transaction, which holds a connection
	if err != nil {
		return err
	}
	change.By(auth.From(r.Context()).Subject)
	var app *application.Application
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		app, err = change.Put(ctx, tx, id, seen, f.settings.LostAfter)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, app)
}
