// Package schemadelete forgets a JSON schema.
package schemadelete

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "DELETE /mdm/schemas/{organization}/{entity_type}/{version}", Role: auth.Operator}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers 204; what was published under the schema stays.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	ref, err := mdm.PathRef(r.PathValue("organization"), r.PathValue("entity_type"), r.PathValue("version"))
	if err != nil {
		return err
	}
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error { return mdm.DeleteSchema(ctx, tx, ref) })
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
