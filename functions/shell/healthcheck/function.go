// Package healthcheck says that the backend of the ICOS shell is there.
package healthcheck

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:    []function.Route{{Pattern: "GET /api/v3/healthcheck", Role: auth.Open}},
	Storeless: true,
}

// Function is the operation.
type Function struct{}

// New returns the function.
func New(*function.Env) (*Function, error) { return &Function{}, nil }

// Handle answers 200 without asking anybody.
func (f *Function) Handle(w http.ResponseWriter, _ *http.Request) error {
	w.WriteHeader(http.StatusOK)
	return nil
}
