// Package scale changes how many replicas a component has.
package scale

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
	Routes:     []function.Route{{Pattern: "PUT /jobmanager/groups/scale/{group_uuid}", Role: auth.Operator}},
	Emits:      []string{events.ApplicationUpdated, events.JobReady},
	PrewakeFor: []string{events.ApplicationUpdated},
	Class:      function.Descriptor,
}

// mostReplicas is more than anybody needs, and keeps a slip of the finger from a cluster.
const mostReplicas = 1000

// Function is the operation.
type Function struct{ revise.Operation }

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	o, err := revise.New(env)
	return &Function{o}, err
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
	return f.Edit(w, r, id, func(document []byte, app *appmodel.Application) ([]byte, error) {
		if component == "" || replicas < 0 {
			return nil, problem.New(problem.Malformed, "?component= and ?replicas= say what is to be scaled, and to how many")
		}
		return descriptor.Scale(document, app, component, int(replicas))
	})
}
