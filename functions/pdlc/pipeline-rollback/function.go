// Package pipelinerollback takes the former model of a pipeline into use again.
package pipelinerollback

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
	Routes: []function.Route{{Pattern: "POST /pdlc/pipelines/{name}/rollback", Role: auth.Operator}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the pipeline; 409 when there is no former model.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var p pipeline.Pipeline
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		p, err = pipeline.Rollback(ctx, tx, r.PathValue("name"), auth.From(ctx).Subject)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, p)
}
