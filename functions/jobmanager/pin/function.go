// Package pin fixes a component to a node.
package pin

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/revise"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:     []function.Route{{Pattern: "PUT /jobmanager/groups/pin/{group_uuid}", Role: auth.Operator}},
	Emits:      []string{events.ApplicationUpdated, events.JobReady},
	PrewakeFor: []string{events.ApplicationUpdated},
	Class:      function.Descriptor,
}

// Function is the operation.
type Function struct{ revise.Operation }

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	o, err := revise.New(env)
	return &Function{o}, err
}

// Handle takes ?component=, and ?cluster= and ?node= of where it is to be; without these two it may go anywhere again. It
// answers the JobGroup with its new descriptor: a new revision, which a rollback undoes. With If-Match, the application must
// be in a version that the header names.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "group_uuid")
	if err != nil {
		return err
	}
	query := function.NewQuery(r, "component", "cluster", "node")
	component, cluster, node := query.Text("component"), query.Text("cluster"), query.Text("node")
	if (cluster == "") != (node == "") {
		query.Fault("node", "a place has both a cluster and a node")
	}
	if err := query.Err(); err != nil {
		return err
	}
	var to *appmodel.Target
	if node != "" {
		to = &appmodel.Target{Cluster: cluster, Node: node}
	}
	return f.Edit(w, r, id, func(document []byte, app *appmodel.Application) ([]byte, error) {
		if component == "" {
			return nil, problem.New(problem.Malformed, "?component= says what is to be pinned")
		}
		return descriptor.Pin(document, app, component, to)
	})
}
