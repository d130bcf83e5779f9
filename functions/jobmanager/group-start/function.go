// Package groupstart asks a stopped application to run again.
package groupstart

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icoswire/jobgroup"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:     []function.Route{{Pattern: "PUT /jobmanager/groups/start/{group_uuid}", Role: auth.Operator}},
	Emits:      []string{events.ApplicationStarted, events.JobReady},
	PrewakeFor: []string{events.ApplicationStarted},
}

// Function is the operation with its settings and store.
type Function struct {
	db       *store.DB
	settings application.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.settings)
}

// Handle answers the JobGroup as it is after the request; asking twice changes nothing more.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	seen, err := function.IfMatch(r)
	if err != nil {
		return err
	}
	start := func(ctx context.Context, tx *store.Tx, id uuid.UUID) (*application.Application, error) {
		return application.Start(ctx, tx, id, f.settings.LostAfter)
	}
	return function.Change(w, r, f.db, "group_uuid", function.As(application.IfSeen(seen, start), jobgroup.Of))
}
