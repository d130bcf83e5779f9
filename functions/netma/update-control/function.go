// Package updatecontrol adds resources to an open stream of ALTO's updates, and takes some away (RFC 8895).
package updatecontrol

import (
	"context"
	"errors"
	"net/http"

	"github.com/littoral-project/littoral/shared/alto"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/netma/serve"
	"github.com/littoral-project/littoral/shared/netma/updates"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function. It changes nothing but what the caller itself is told.
var Spec = function.Spec{Routes: []function.Route{{Pattern: "POST /alto/updates/{id}", Role: auth.Viewer}}}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers 204; the stream itself says what it has then.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	asked, ok, err := serve.Question(w, r, alto.UpdateParams, alto.ErrorMedia, updates.ParseControl)
	if err != nil || !ok {
		return err
	}
	id, err := function.PathID(r, "id")
	if err != nil {
		return err
	}
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		return updates.Control(ctx, tx, id, auth.From(ctx).Subject, asked)
	})
	var fault *alto.Error
	switch {
	case errors.As(err, &fault):
		return fault.Write(w)
	case err != nil:
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
