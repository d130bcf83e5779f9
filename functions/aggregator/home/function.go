// Package home says that the aggregator is there.
package home

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:    []function.Route{{Pattern: "GET /aggregator/healthz", Role: auth.Open}},
	Storeless: true,
}

// Function answers that it lives; like any probe it asks nobody.
type Function struct{}

// New makes the function.
func New(*function.Env) (*Function, error) { return &Function{}, nil }

// Handle answers GET /aggregator/healthz.
func (*Function) Handle(w http.ResponseWriter, _ *http.Request) error {
	return function.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}
