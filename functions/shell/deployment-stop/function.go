// Package deploymentstop stops a deployment for the ICOS shell.
package deploymentstop

import (
	"net/http"

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
	Routes:     []function.Route{{Pattern: "PUT /api/v3/deployment/{deployment_id}/stop", Role: auth.Operator, Aliases: []string{"POST /api/v3/deployment/{deployment_id}/stop", "DELETE /api/v3/deployment/{deployment_id}/stop"}}},
	Needs:      []function.Need{function.SignIn}, // refresh tokens are sent as api_key
	Emits:      []string{events.ApplicationStopped, events.JobReady},
	PrewakeFor: []string{events.ApplicationStopped, events.JobReady},
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

// Handle answers the JobGroup as it is after the request; asking twice changes nothing more. The published client stops with
// DELETE.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	return function.Change(w, r, f.db, "deployment_id", function.As(application.Stop, jobgroup.Of))
}
