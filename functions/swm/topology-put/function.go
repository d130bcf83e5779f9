// Package topologyput takes the description of a network.
package topologyput

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/topologies"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "PUT /swm/topologies/{name}", Role: auth.Operator}},
	Emits:  []string{events.TopologyChanged},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the description as it is stored. Who waits for a place is looked at again.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	body, err := function.Document(r)
	if err != nil {
		return err
	}
	document, err := topologies.Parse(body)
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	if len(name) > 253 {
		return problem.New(problem.Malformed, "the name has more than 253 characters")
	}
	var stored *topologies.Stored
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := topologies.Save(ctx, tx, name, document); err != nil {
			return err
		}
		if stored, err = topologies.Get(ctx, tx, name); err != nil {
			return err
		}
		return topologies.Announce(ctx, tx, name, "network "+document.NetworkImplementation)
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, stored)
}
