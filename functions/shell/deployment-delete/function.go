// Package deploymentdelete deletes a deployment for the ICOS shell.
package deploymentdelete

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icosshell"
	"github.com/littoral-project/littoral/shared/icoswire/jobgroup"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "DELETE /api/v3/deployment/{deployment_id}", Role: auth.Operator}},
	Needs:  []function.Need{function.SignIn}, // refresh tokens are sent as api_key
	Emits:  []string{events.ApplicationDeleted, events.ApplicationStopped, events.JobReady},
}

// Function is the operation with its store.
type Function struct {
	icosshell.Callers

	db *store.DB
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	callers, err := icosshell.NewCallers(env)
	return &Function{callers, env.DB}, err
}

// Handle answers the JobGroup that is deleted. One that runs is stopped first, and gone when its last removal is reported.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	remove := func(ctx context.Context, tx *store.Tx, id uuid.UUID) (app *application.Application, err error) {
		app, _, err = application.Delete(ctx, tx, id, true)
		return app, err
	}
	return function.Change(w, r, f.db, "deployment_id", function.As(remove, jobgroup.Of))
}
