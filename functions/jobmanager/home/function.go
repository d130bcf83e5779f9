// Package home says that the job manager is there.
package home

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{
		{Pattern: "GET /jobmanager", Role: auth.Open, Aliases: []string{"GET /jobmanager/{$}"}},
		{Pattern: "GET /jobmanager/healthz", Role: auth.Open},
	},
	Storeless: true,
}

// Function is the operation.
type Function struct{}

// New returns the function.
func New(*function.Env) (*Function, error) { return &Function{}, nil }

// Handle answers that the component is there. It does not ask the store: a component without its store still answers.
func (f *Function) Handle(w http.ResponseWriter, _ *http.Request) error {
	return function.WriteJSON(w, http.StatusOK, map[string]string{"component": "jobmanager", "status": "ok"})
}
