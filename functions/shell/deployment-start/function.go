// Package deploymentstart starts a deployment for the ICOS shell.
package deploymentstart

import (
	"context"
	"errors"
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
	Routes:     []function.Route{{Pattern: "PUT /api/v3/deployment/{deployment_id}/start", Role: auth.Operator, Aliases: []string{"POST /api/v3/deployment/{deployment_id}/start"}}},
	Needs:      []function.Need{function.SignIn}, // refresh tokens are sent as api_key
	Emits:      []string{events.ApplicationStarted, events.JobReady},
	PrewakeFor: []string{events.ApplicationStarted},
}

// Function is the operation with its settings and store.
type Function struct {
	icosshell.Callers

	db       *store.DB
	settings application.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	callers, err := icosshell.NewCallers(env)
	f := &Function{Callers: callers, db: env.DB}
	return f, errors.Join(err, env.Config(&f.settings))
}

// Handle answers the JobGroup as it is after the request; asking twice changes nothing more.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	start := func(ctx context.Context, tx *store.Tx, id uuid.UUID) (*application.Application, error) {
		return application.Start(ctx, tx, id, f.settings.LostAfter)
	}
	return function.Change(w, r, f.db, "deployment_id", function.As(start, jobgroup.Of))
}
