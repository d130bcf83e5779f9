// Package networkmap answers the whole network map of ALTO: which addresses belong to which node.
package networkmap

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/alto"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/netma/exposure"
	"github.com/littoral-project/littoral/shared/netma/view"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /alto/networkmap", Role: auth.Viewer, Aliases: []string{"GET /networkmap"}}},
	Class:  function.Large,
}

// Function is the operation with its store, and the network as it was read last.
type Function struct {
	db   *store.DB
	view view.Cache
}

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the map, with its version as entity tag.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	if err := exposure.Check(r, "", alto.NetworkMap); err != nil {
		return err
	}
	v, err := f.view.Get(r.Context(), f.db)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", `"`+v.Tag+`"`)
	return alto.WriteJSON(w, alto.NetworkMap, exposure.NetworkMap(v, alto.MapFilter{}))
}
