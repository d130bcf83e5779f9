// Package rulelist lists the rule groups that were put.
package rulelist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
	"github.com/littoral-project/littoral/shared/telemetry/rules/backend"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "GET /rules", Role: auth.Viewer,
		Aliases: []string{"GET /rules/{$}", "GET /api/v1/rules", "GET /api/v1/rules/{$}"},
	}},
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

// file is a group with the id that it was put under.
type file struct {
	File  string      `json:"file"`
	Group rules.Group `json:"group"`
}

// Handle lists all groups by id. Rules that others keep in the same back end are not in it.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	if err := function.NewQuery(r).Err(); err != nil {
		return err
	}
	groups, err := f.store.List(r.Context())
	if err != nil {
		return err
	}
	list := make([]file, len(groups))
	for i, g := range groups {
		list[i] = file{rules.ID(g.Name), g}
	}
	return function.WriteJSON(w, http.StatusOK, list)
}
