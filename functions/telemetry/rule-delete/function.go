// Package ruledelete removes a rule group.
package ruledelete

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
	"github.com/littoral-project/littoral/shared/telemetry/rules/backend"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{
		{Pattern: "DELETE /rules/{file}", Role: auth.Operator, Aliases: []string{"DELETE /api/v1/rules/{file}"}},
	},
	Storeless:  true,
	Kubernetes: true,
	Needs:      []function.Need{function.RuleStore},
}

// Function is the operation with its store.
type Function struct{ store rules.Store }

// New opens the store that the settings name.
func New(env *function.Env) (*Function, error) {
	s, err := backend.Open(backend.Platform{
		Config: env.Config, Client: env.HTTP, Transport: env.Observe.Transport, DB: env.DB,
	})
	return &Function{s}, err
}

// Handle removes the group whose id was answered when it was put.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	if err := function.NewQuery(r).Err(); err != nil {
		return err
	}
	if err := f.store.Delete(r.Context(), r.PathValue("file")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
