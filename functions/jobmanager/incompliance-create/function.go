// Package incompliancecreate takes a policy violation and carries out its remediation.
package incompliancecreate

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/remediation"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "POST /jobmanager/policies/incompliance", Role: auth.Operator,
		Aliases: []string{"POST /jobmanager/policies/incompliance/create"},
	}},
	Emits:      []string{events.ApplicationPlaced, events.ApplicationUnplaced, events.JobReady},
	PrewakeFor: []string{events.JobReady},
	Class:      function.Medium, // for each call ten thousand nodes, and the problem they make
}

// Function is the operation with its settings and store.
type Function struct {
	db     *store.DB
	config remediation.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.config)
}

// Handle answers the incompliance once its remediation is on its way; one that was sent before changes nothing more.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var in remediation.Incompliance
	if err := function.DecodeJSON(r, &in); err != nil {
		return err
	}
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := remediation.Apply(ctx, tx, &in, f.config)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, in)
}
