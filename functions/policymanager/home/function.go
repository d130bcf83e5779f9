// Package home says that the policy manager is there.
package home

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
)

// Spec declares the function. It is open, since the answer contains no information.
var Spec = function.Spec{
	Routes: []function.Route{
		{Pattern: "GET /polman", Role: auth.Open, Aliases: []string{"GET /polman/{$}"}},
		{Pattern: "GET /polman/healthz", Role: auth.Open},
	},
	Storeless: true,
}

// Function is the operation.
type Function struct{}

// New returns the function.
func New(*function.Env) (*Function, error) { return &Function{}, nil }

// Handle answers without asking anyone, so that it also works while the store is away.
func (f *Function) Handle(w http.ResponseWriter, _ *http.Request) error {
	return function.WriteJSON(w, http.StatusOK, map[string]string{"component": "policymanager", "status": "ok"})
}
