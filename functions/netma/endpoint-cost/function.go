// Package endpointcost answers the costs between addresses, by ALTO.
package endpointcost

import (
	"net/http"
	"time"

	"github.com/littoral-project/littoral/shared/alto"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/netma/exposure"
	"github.com/littoral-project/littoral/shared/netma/serve"
	"github.com/littoral-project/littoral/shared/netma/view"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "POST /alto/endpointcost", Role: auth.Viewer}},
	Class:  function.Large,
}

// Function is the operation with its store, and the network as it was read last.
type Function struct {
	db   *store.DB
	view view.Cache
}

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the costs, or what ALTO says of a request that cannot be read.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	asked, ok, err := serve.Question(w, r, alto.EndpointCostParams, alto.EndpointCost, func(body []byte) (*alto.CostFilter, *alto.Error) {
		return alto.ParseEndpointCost(body, exposure.TypeOf)
	})
	if err != nil || !ok {
		return err
	}
	v, err := f.view.Get(r.Context(), f.db)
	if err != nil {
		return err
	}
	text, err := exposure.BetweenEndpoints(v, asked, exposure.Caller(r), time.Now())
	return serve.Answer(w, alto.EndpointCost, text, err)
}
