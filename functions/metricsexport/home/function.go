// Package home says that the metrics export is there.
package home

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /metricsexport", Role: auth.Open, Aliases: []string{"GET /metricsexport/{$}", "GET /metricsexport/healthz"}}},
}

// Function answers that it lives; like any probe it asks nobody.
type Function struct{}

// New makes the function.
func New(*function.Env) (*Function, error) { return &Function{}, nil }

// Handle answers that the component is there.
func (*Function) Handle(w http.ResponseWriter, _ *http.Request) error {
	return function.WriteJSON(w, http.StatusOK, map[string]string{"component": "metricsexport", "status": "ok"})
}
