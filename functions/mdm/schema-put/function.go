// Package schemaput registers a JSON schema, against which payloads that name it are held from then on.
package schemaput

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/mdm/schema"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "PUT /mdm/schemas/{organization}/{entity_type}/{version}", Role: auth.Operator}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the schema as it is stored.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	ref, err := mdm.PathRef(r.PathValue("organization"), r.PathValue("entity_type"), r.PathValue("version"))
	if err != nil {
		return err
	}
	body, err := function.Body(r)
	if err != nil {
		return err
	}
	if err := schema.Check(body); err != nil {
		return err
	}
	var stored *mdm.Schema
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		stored, err = mdm.PutSchema(ctx, tx, ref, body, auth.From(ctx).Subject)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, stored)
}
