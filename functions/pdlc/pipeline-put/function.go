// Package pipelineput adds a pipeline that trains a model again and again, or changes one.
package pipelineput

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/pipeline"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "PUT /pdlc/pipelines/{name}", Role: auth.Operator}},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the pipeline. Its first training is due at once.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var p pipeline.Pipeline
	if err := function.DecodeJSON(r, &p); err != nil {
		return err
	}
	p.Name = r.PathValue("name")
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		p, err = pipeline.Save(ctx, tx, p, auth.From(ctx).Subject)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, p)
}
