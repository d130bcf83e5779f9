// Package deploymentget tells the ICOS shell of one deployment.
package deploymentget

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icosshell"
	"github.com/littoral-project/littoral/shared/icoswire/jobgroup"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /api/v3/deployment/{deployment_id}", Role: auth.Viewer}},
	Needs:  []function.Need{function.SignIn}, // refresh tokens are sent as api_key
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

// Handle answers the JobGroup.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	return function.Show(w, r, f.db, "deployment_id", function.As(application.Get, jobgroup.Of))
}
