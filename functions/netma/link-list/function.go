// Package linklist lists what was measured between nodes, and what is foreseen.
package linklist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /netma/links", Role: auth.Viewer}},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// link is one with what is foreseen of it.
type link struct {
	links.Measurement
	Forecasts []links.Forecast `json:"forecasts,omitempty"`
}

// Handle answers all links, with the figures of each and why it does not keep its channels.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	measured, err := links.All(r.Context(), f.db)
	if err != nil {
		return err
	}
	foreseen, err := links.Foreseen(r.Context(), f.db)
	if err != nil {
		return err
	}
	of := map[[2]string][]links.Forecast{}
	for _, one := range foreseen {
		at := [2]string{one.Source, one.Target}
		of[at] = append(of[at], one)
	}
	all := make([]link, len(measured))
	for i, m := range measured {
		all[i] = link{m, of[[2]string{m.Source, m.Target}]}
	}
	return function.WriteJSON(w, http.StatusOK, all)
}
