// Package metricdelete ends an exported metric of any type.
package metricdelete

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "POST /metricsexport/unregister_metric", Role: auth.Operator, Aliases: []string{"POST /unregister_metric"},
	}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers 200 with a message, as ICOS does.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name string `json:"metric_name"`
	}
	if err := function.DecodeJSON(r, &body); err != nil {
		return err
	}
	if body.Name == "" {
		var faults problem.Faults
		faults.Add("metric_name", 0, "is missing")
		return faults.Err("no metric is named")
	}
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error { return metricsexport.Delete(ctx, tx, body.Name) })
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, map[string]string{"message": body.Name + " is no longer exported"})
}
