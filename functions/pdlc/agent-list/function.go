// Package agentlist lists the agents that recommend nodes, with how each did.
package agentlist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/advice"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /pdlc/agents", Role: auth.Viewer}},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers those that were trained.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	list, err := advice.Agents(r.Context(), f.db)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, list)
}
