// Package connectordelete forgets a connector.
package connectordelete

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "DELETE /mdm/connectors/{connector}", Role: auth.Operator}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers 204; what the connector has published stays.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	return function.Act(w, r, f.db, "connector", mdm.Unregister)
}
