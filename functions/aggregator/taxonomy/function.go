// Package taxonomy answers with the clusters, nodes and pods that telemetry reports now.
//
// It does not read the stored topology: a caller sees the live picture with its gaps, each named in warnings.
package taxonomy

import (
	"net/http"
	"time"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/topology/collect"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:    []function.Route{{Pattern: "GET /aggregator/{$}", Role: auth.Viewer, Aliases: []string{"GET /aggregator"}}},
	Storeless: true,
	Memory:    "128Mi", // the answers of all queries are in memory at once
}

// Function answers the taxonomy.
type Function struct{ telemetry *collect.Collector }

// New makes the function.
func New(env *function.Env) (*Function, error) {
	telemetry, err := collect.Open(env)
	return &Function{telemetry: telemetry}, err
}

// Handle answers GET /aggregator/: the newest shape, with ?shape=v1 the older one. Without the telemetry that says what
// there is the answer is 503, never an empty taxonomy.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	q := function.NewQuery(r, "shape")
	shape := q.OneOf("shape", "v1")
	if err := q.Err(); err != nil {
		return err
	}
	picture, err := f.telemetry.Collect(r.Context(), time.Now())
	if err != nil {
		return err
	}
	if shape == "v1" {
		return function.WriteJSON(w, http.StatusOK, picture.Taxonomy.V1())
	}
	return function.WriteJSON(w, http.StatusOK, picture.Taxonomy)
}
