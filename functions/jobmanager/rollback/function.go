// Package rollback gives an application a descriptor that it had before.
package rollback

import (
	"math"
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/revise"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:     []function.Route{{Pattern: "PUT /jobmanager/groups/rollback/{group_uuid}", Role: auth.Operator}},
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

// Handle goes back to the revision ?to=N, else to the one before the newest, and answers the JobGroup as it is then: in a
// new revision, which differs from the newest as an update would. With If-Match, the application must be in a version that
// the header names.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "group_uuid")
	if err != nil {
		return err
	}
	query := function.NewQuery(r, "to")
	to := query.Int("to", 0, 1, math.MaxInt64)
	if err := query.Err(); err != nil {
		return err
	}
	seen, err := function.IfMatch(r)
	if err != nil {
		return err
	}
	back, err := application.ReadRollback(r.Context(), f.DB, id, to, f.Parser(r.Context(), false))
	if err != nil {
		return err
	}
	return f.Put(w, r, back, seen)
}
