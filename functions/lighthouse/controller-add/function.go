// Package controlleradd notes where a controller is, as long as it says so.
package controlleradd

import (
	"context"
	"errors"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icosshell"
	"github.com/littoral-project/littoral/shared/lighthouse"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "POST /api/v3/controller/{$}", Role: auth.Controller, Aliases: []string{"POST /api/v3/controller"}}},
	Emits:  []string{events.ClockWanted},
	Needs:  []function.Need{function.SignIn}, // refresh tokens are sent as api_key
}

// Function is the operation with its settings and store.
type Function struct {
	icosshell.Callers

	db     *store.DB
	config lighthouse.Config
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	callers, err := icosshell.NewCallers(env)
	f := &Function{Callers: callers, db: env.DB}
	return f, errors.Join(err, env.Config(&f.config))
}

// Handle answers 201 for a controller that was not known, and 202 for one that was, which is then known for longer.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var c lighthouse.Controller
	if err := function.DecodeJSON(r, &c); err != nil {
		return err
	}
	status := http.StatusAccepted
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		fresh, err := lighthouse.Register(ctx, tx, c, auth.From(ctx).Subject, f.config.Timeout)
		if err != nil || !fresh {
			return err
		}
		status = http.StatusCreated
		return tx.Emit(ctx, events.ClockWanted, events.Clocks, events.Clock{Need: "controllers"})
	})
	if err != nil {
		return err
	}
	w.WriteHeader(status)
	return nil
}
