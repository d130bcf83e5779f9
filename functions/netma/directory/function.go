// Package directory says what is exposed by ALTO (RFC 7285): an information resource directory.
package directory

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/alto"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/netma/exposure"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:    []function.Route{{Pattern: "GET /alto", Role: auth.Viewer}},
	Storeless: true,
}

// Function is the operation.
type Function struct{}

// New returns the function.
func New(*function.Env) (*Function, error) { return &Function{}, nil }

// Handle answers the directory.
func (*Function) Handle(w http.ResponseWriter, r *http.Request) error {
	if err := exposure.Check(r, "", alto.Directory); err != nil {
		return err
	}
	return alto.WriteJSON(w, alto.Directory, exposure.Directory())
}
