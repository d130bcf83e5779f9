// Package groupstop removes what runs of an application and keeps the application.
package groupstop

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icoswire/jobgroup"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "PUT /jobmanager/groups/stop/{group_uuid}", Role: auth.Operator,
		Aliases: []string{"PUT /jobmanager/groups/undeploy/{group_uuid}"},
	}},
	Emits:      []string{events.ApplicationStopped, events.JobReady},
	PrewakeFor: []string{events.ApplicationStopped, events.JobReady},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the JobGroup as it is after the request; asking twice changes nothing more.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	seen, err := function.IfMatch(r)
	if err != nil {
		return err
	}
	return function.Change(w, r, f.db, "group_uuid", function.As(application.IfSeen(seen, application.Stop), jobgroup.Of))
}
