// Package groupupdate gives an application a new descriptor; only what differs is touched.
package groupupdate

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icoswire/jobgroup"
	"github.com/littoral-project/littoral/shared/revise"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{
		{Pattern: "PUT /jobmanager/groups", Role: auth.Operator},
		{Pattern: "PUT /jobmanager/groups/{group_uuid}", Role: auth.Operator},
	},
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

// Handle takes a descriptor, for the application in the path, in the query (?id=) or else the only one of its name; or
// a JobGroup as GET answers it, with changed objects in its jobs. With If-Match, the application must be in a version
// that the header names. With ?strict=true, a descriptor may have no warnings.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	body, err := function.Document(r)
	if err != nil {
		return err
	}
	query := function.NewQuery(r, "id", "strict")
	id, strict := query.ID("id"), query.Bool("strict")
	if err := query.Err(); err != nil {
		return err
	}
	if r.PathValue("group_uuid") != "" {
		given, err := function.PathID(r, "group_uuid")
		if err != nil {
			return err
		}
		id = &given
	}
	seen, err := function.IfMatch(r)
	if err != nil {
		return err
	}
	change, err := jobgroup.ReadChange(id, body, f.Parser(r.Context(), strict))
	if err != nil {
		return err
	}
	return f.Put(w, r, change, seen)
}
