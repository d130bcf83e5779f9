// Package home says that the metadata manager is there, and its version.
package home

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:    []function.Route{{Pattern: "GET /mdm", Role: auth.Viewer}},
	Storeless: true,
}

// Function answers that it lives; it asks nobody.
type Function struct{}

// New makes the function.
func New(*function.Env) (*Function, error) { return &Function{}, nil }

// Handle answers the version of the interface.
func (*Function) Handle(w http.ResponseWriter, _ *http.Request) error {
	return function.WriteJSON(w, http.StatusOK, map[string]string{"component": "mdm", "version": mdm.Version})
}
