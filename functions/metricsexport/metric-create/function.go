// Package metriccreate exports a metric whose values are sent, or gives it another value.
package metriccreate

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "POST /metricsexport/create_metric", Role: auth.Operator, Aliases: []string{"POST /create_metric"},
	}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers 200 with a message, as ICOS does.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var c metricsexport.Creation
	if err := function.DecodeJSON(r, &c); err != nil {
		return err
	}
	by := auth.From(r.Context()).Subject
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error { return metricsexport.Create(ctx, tx, c, by) })
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, map[string]string{"message": c.Name + " is exported"})
}
