// Package endpointproperty answers where addresses are, by ALTO.
package endpointproperty

import (
	"net/http"

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
	Routes: []function.Route{{Pattern: "POST /alto/endpointprop", Role: auth.Viewer}},
	Class:  function.Large,
}

// Function is the operation with its store, and the network as it was read last.
type Function struct {
	db   *store.DB
	view view.Cache
}

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the properties, or what ALTO says of a request that cannot be read.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	asked, ok, err := serve.Question(w, r, alto.EndpointPropParams, alto.EndpointProp, func(body []byte) (alto.PropertyRequest, *alto.Error) {
		return alto.ParsePropertyRequest(body, exposure.IsProperty)
	})
	if err != nil || !ok {
		return err
	}
	v, err := f.view.Get(r.Context(), f.db)
	if err != nil {
		return err
	}
	return alto.WriteJSON(w, alto.EndpointProp, exposure.EndpointProperties(v, asked))
}
