// Package federationdelete ends a federation.
package federationdelete

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/federation"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "DELETE /pdlc/federations/{name}", Role: auth.Operator}},
	Emits:  []string{events.TrainingRequested},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers 204.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		return federation.Delete(ctx, tx, r.PathValue("name"))
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
