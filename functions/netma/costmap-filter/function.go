// Package costmapfilter answers a part of the cost maps of ALTO: one kind of cost, or several at once (RFC 8189), as they are or by a calendar (RFC 8896).
package costmapfilter

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
	Routes: []function.Route{{Pattern: "POST /alto/costmap", Role: auth.Viewer}},
	Class:  function.Large,
}

// Function is the operation with its store, and the network as it was read last.
type Function struct {
	db   *store.DB
	view view.Cache
}

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the costs that are asked for, or what ALTO says of a request that cannot be read.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	asked, ok, err := serve.Question(w, r, alto.CostMapFilter, alto.CostMap, func(body []byte) (*alto.CostFilter, *alto.Error) {
		return alto.ParseCostFilter(body, exposure.TypeOf)
	})
	if err != nil || !ok {
		return err
	}
	v, err := f.view.Get(r.Context(), f.db)
	if err != nil {
		return err
	}
	text, err := exposure.Filtered(v, asked, time.Now())
	return serve.Answer(w, alto.CostMap, text, err)
}
