// Package applicationput registers an application that is deployed by others, so that its components are told where they run.
package applicationput

import (
	"cmp"
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/dialect"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/exporter"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{
		{Pattern: "PUT /applications/{app_instance}", Role: auth.Operator},
		{Pattern: "PUT /deployment", Role: auth.Operator}, // of the first design: the instance has the application's name
	},
	Emits: []string{events.TopologyPublished},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle registers what the descriptor names, or replaces what was registered.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	body, err := function.Document(r)
	if err != nil {
		return err
	}
	parsed, err := dialect.DecodeHeader(dialect.Of(body), body, nil)
	if err != nil {
		return err
	}
	a := exporter.Application{Name: parsed.Name, Components: []string{}}
	for i := range parsed.Components {
		a.Components = append(a.Components, parsed.Components[i].Name)
	}
	instance := cmp.Or(r.PathValue("app_instance"), parsed.Name)
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error { return exporter.Register(ctx, tx, instance, a) })
	if err != nil {
		return store.Classify(err)
	}
	return function.WriteJSON(w, http.StatusOK, map[string]exporter.Application{instance: a})
}
