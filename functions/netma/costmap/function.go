// Package costmap answers a whole cost map of ALTO.
package costmap

import (
	"cmp"
	"net/http"

	"github.com/littoral-project/littoral/shared/alto"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/netma/exposure"
	"github.com/littoral-project/littoral/shared/netma/view"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{
		{Pattern: "GET /alto/costmap/{mode}/{metric}", Role: auth.Viewer},
		{Pattern: "GET /costmap", Role: auth.Viewer}, // as the proof of concept of CODECO has it
	},
	Class: function.Large,
}

// Function is the operation with its store, and the network as it was read last.
type Function struct {
	db   *store.DB
	view view.Cache
}

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the costs of the kind that the path names; of /costmap the routing costs.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	if err := exposure.Check(r, "", alto.CostMap); err != nil {
		return err
	}
	asked := alto.CostType{Mode: cmp.Or(r.PathValue("mode"), alto.Numerical), Metric: cmp.Or(r.PathValue("metric"), "routingcost")}
	kind, known := exposure.TypeOf(asked)
	if !known {
		return problem.New(problem.NotFound, "there is no cost map of %s %s", asked.Mode, problem.Brief(asked.Metric, 60))
	}
	v, err := f.view.Get(r.Context(), f.db)
	if err != nil {
		return err
	}
	text, err := exposure.CostMap(v, kind)
	if err != nil {
		return err
	}
	return alto.Write(w, alto.CostMap, text)
}
