// Package scale changes how many replicas a component has.
package scale

import (
	"context"
	"errors"
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/admit"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:     []function.Route{{Pattern: "PUT /jobmanager/groups/scale/{group_uuid}", Role: auth.Operator}},
	Emits:      []string{events.ApplicationUpdated, events.JobReady},
	PrewakeFor: []string{events.ApplicationUpdated},
	Memory:     "128Mi", // it carries the parser of PromQL
}

// mostReplicas is more than anybody needs, and keeps a slip of the finger from a cluster.
const mostReplicas = 1000

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

// Handle takes ?component= and ?replicas= and answers the JobGroup with its new descriptor: a new revision, which a rollback
// undoes. With If-Match, the application must be in a version that the header names.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "group_uuid")
	if err != nil {
		return err
	}
	query := function.NewQuery(r, "component", "replicas")
	component, replicas := query.Text("component"), query.Int("replicas", -1, 0, mostReplicas)
	if err := query.Err(); err != nil {
		return err
	}
	seen, err := function.IfMatch(r)
	if err != nil {
		return err
	}
	prepared, err := application.ReadEdit(r.Context(), f.db, id, func(document []byte) (*appmodel.Application, error) {
		return f.admit.Application(document, false)
	}, func(document []byte, app *appmodel.Application) ([]byte, error) {
		if component == "" || replicas < 0 {
			return nil, problem.New(problem.Malformed, "?component= and ?replicas= say what is to be scaled, and to how many")
		}
		return descriptor.Scale(document, app, component, int(replicas))
	})
	if err != nil {
		return err
	}
	var app *application.Application
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		app, err = prepared.Put(ctx, tx, auth.From(ctx).Subject, seen, f.settings.LostAfter)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, app)
}
