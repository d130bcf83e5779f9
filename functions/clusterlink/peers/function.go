// Package peers tells which clusters links can reach, and which links there are.
package peers

import (
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/clusterlink"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/linking"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{
		{Pattern: "GET /clusterlink/peers", Role: auth.Viewer},
		{Pattern: "GET /clusterlink/links", Role: auth.Viewer},
	},
	Class: function.Large, // it reads the whole topology
}

// Function is the operation with its settings and store.
type Function struct {
	db     *store.DB
	config config
}

type config struct {
	topology.Freshness

	Links clusterlink.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	if err := env.Config(&f.config); err != nil {
		return nil, err
	}
	return f, f.config.Links.Check()
}

// Handle answers the clusters, or the links of one application or all.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Path == "/clusterlink/links" {
		return f.links(w, r)
	}
	inv, err := topology.ReadInventory(r.Context(), f.db)
	switch {
	case errors.Is(err, topology.ErrUnknown):
		return function.WriteJSON(w, http.StatusOK, []linking.Peer{})
	case err != nil:
		return store.Classify(err)
	}
	return function.WriteJSON(w, http.StatusOK, linking.Peers(f.config.Links, inv, f.config.StaleAfter))
}

func (f *Function) links(w http.ResponseWriter, r *http.Request) error {
	var sides []linking.Side
	var err error
	if text := r.URL.Query().Get("application"); text != "" {
		id, fault := uuid.Parse(text)
		if fault != nil {
			return problem.New(problem.Malformed, "application: %q is no id", text)
		}
		sides, err = linking.Of(r.Context(), f.db, id)
	} else {
		sides, err = linking.All(r.Context(), f.db)
	}
	if err != nil {
		return store.Classify(err)
	}
	return function.WriteJSON(w, http.StatusOK, append([]linking.Side{}, sides...))
}
