// Package groupdelete deletes an application.
package groupdelete

import (
	"context"
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
	Routes: []function.Route{{Pattern: "DELETE /jobmanager/groups/{group_uuid}", Role: auth.Operator}},
	Emits:  []string{events.ApplicationDeleted, events.ApplicationStopped, events.JobReady},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers 200 with the JobGroup that was deleted. One that runs is refused, unless ?stop=true: then it is
// stopped first, the answer is 202, and it is deleted when its last removal is reported. The answer is also 202 for one
// that is still being deleted.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "group_uuid")
	if err != nil {
		return err
	}
	query := function.NewQuery(r, "stop")
	stop := query.OneOf("stop", "true", "false") == "true"
	if err := query.Err(); err != nil {
		return err
	}
	seen, err := function.IfMatch(r)
	if err != nil {
		return err
	}
	var app *application.Application
	var gone bool
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := application.Expect(ctx, tx, id, seen); err != nil {
			return err
		}
		app, gone, err = application.Delete(ctx, tx, id, stop)
		return err
	})
	if err != nil {
		return err
	}
	status := http.StatusAccepted
	if gone {
		status = http.StatusOK
	}
	return function.WriteJSON(w, status, jobgroup.Of(app))
}
