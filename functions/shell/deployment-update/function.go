// Package deploymentupdate takes a changed descriptor from the ICOS shell.
package deploymentupdate

import (
	"errors"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icosshell"
	"github.com/littoral-project/littoral/shared/icoswire/jobgroup"
	"github.com/littoral-project/littoral/shared/revise"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:     []function.Route{{Pattern: "PUT /api/v3/deployment/{deployment_id}", Role: auth.Operator}},
	Needs:      []function.Need{function.SignIn}, // refresh tokens are sent as api_key
	Emits:      []string{events.ApplicationUpdated, events.JobReady},
	PrewakeFor: []string{events.ApplicationUpdated},
	Class:      function.Descriptor,
}

// Function is the operation with its settings and store.
type Function struct {
	icosshell.Callers
	revise.Operation
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	callers, err := icosshell.NewCallers(env)
	o, invalid := revise.New(env)
	return &Function{callers, o}, errors.Join(err, invalid)
}

// Handle takes a descriptor for the application in the path, and answers the JobGroup after the change.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "deployment_id")
	if err != nil {
		return err
	}
	document, err := icosshell.Document(r)
	if err != nil {
		return err
	}
	change, err := jobgroup.ReadChange(&id, document, f.Parser(r.Context(), false))
	if err != nil {
		return err
	}
	return f.Put(w, r, change, etag.Match{})
}
