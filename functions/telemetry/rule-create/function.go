// Package rulecreate takes rule groups in and has them evaluated.
package rulecreate

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
	"github.com/littoral-project/littoral/shared/telemetry/rules/backend"
	"github.com/littoral-project/littoral/shared/telemetry/rules/check"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "POST /rules", Role: auth.Operator,
		Aliases: []string{"POST /rules/{$}", "POST /api/v1/rules", "POST /api/v1/rules/{$}"},
	}},
	Storeless:  true,
	Class:      function.Medium, // it holds Prometheus' parser
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

// answer names the file of the first group as ICOS reads it, and those of all.
type answer struct {
	File  string   `json:"file"`
	Files []string `json:"files"`
}

// Handle checks all groups and then stores one after the other. Each is an object of its own; when one fails, those
// before it stay, and repeating the request does the rest.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	if err := function.NewQuery(r).Err(); err != nil {
		return err
	}
	body, err := function.Body(r)
	if err != nil {
		return err
	}
	groups, err := check.Request(body)
	if err != nil {
		return err
	}
	var out answer
	for _, g := range groups {
		if err := f.store.Put(r.Context(), g); err != nil {
			return err
		}
		out.Files = append(out.Files, rules.ID(g.Name))
	}
	out.File = out.Files[0]
	return function.WriteJSON(w, http.StatusOK, out)
}
