// Package endpointcost answers the costs between addresses, by ALTO.
package endpointcost

import (
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
	if err := exposure.Check(r, alto.EndpointCostParams, alto.EndpointCost); err != nil {
		return err
	}
	body, err := function.Body(r)
	if err != nil && problem.KindOf(err) != problem.Malformed {
		return err
	}
	asked, fault := alto.ParseEndpointCost(body, exposure.TypeOf)
	if fault != nil {
		return fault.Write(w)
	}
	v, err := f.view.Get(r.Context(), f.db)
	if err != nil {
		return err
	}
	text, err := exposure.BetweenEndpoints(v, asked, exposure.Caller(r))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", alto.EndpointCost)
	_, _ = w.Write(text)
	return nil
}
