// Package templatelist lists the templates that policies can be made from.
package templatelist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/template"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "GET /polman/registry/api/v1/templates", Role: auth.Viewer,
		Aliases: []string{
			"GET /registry/api/v1/templates",
			"GET /polman/registry/api/v1/templates/{$}",
			"GET /registry/api/v1/templates/{$}",
		},
	}},
	Storeless: true,
}

// Function is the operation; it asks nobody.
type Function struct{}

// New returns the function.
func New(*function.Env) (*Function, error) { return &Function{}, nil }

// Handle answers the templates with their variables, in the order of the policies page.
func (f *Function) Handle(w http.ResponseWriter, _ *http.Request) error {
	return function.WriteJSON(w, http.StatusOK, template.All())
}
