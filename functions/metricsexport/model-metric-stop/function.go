// Package modelmetricstop ends metrics whose values models foresee.
package modelmetricstop

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
		Pattern: "POST /metricsexport/stop_model_metrics", Role: auth.Operator, Aliases: []string{"POST /stop_model_metrics"},
	}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers 200 with a message, as ICOS does. Either all of them end, or none.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Names []string `json:"metric_names"`
	}
	if err := function.DecodeJSON(r, &body); err != nil {
		return err
	}
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error { return metricsexport.Stop(ctx, tx, body.Names) })
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, map[string]string{"message": "they are no longer foreseen"})
}
