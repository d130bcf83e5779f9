// Package connectorput registers a connector.
package connectorput

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "PUT /mdm/connectors/{connector}", Role: auth.Operator}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the connector as it is registered.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "connector")
	if err != nil {
		return err
	}
	var given struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Interval int    `json:"interval_seconds"`
	}
	if err := function.DecodeJSON(r, &given); err != nil {
		return err
	}
	var stored *mdm.Connector
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		stored, err = mdm.Register(ctx, tx, mdm.Connector{ID: id, Type: given.Type, Name: given.Name, Interval: given.Interval})
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, stored)
}
