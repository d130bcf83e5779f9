// Package accept stores an application that another controller hands over. Nothing acts on it before that one grants a lease.
package accept

import (
	"context"
	"errors"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/dialect"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/handover"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "PUT /controller/applications/{application}", Role: auth.Controller}},
	Needs:  []function.Need{function.ClientCredentials, function.Peers},
	Emits:  []string{events.ClockWanted},
	// A descriptor as JSON may be longer than itself.
	MaxBody: 3 << 20,
}

// Function is the operation with its store.
type Function struct {
	db    *store.DB
	peers *peer.Client
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	var c peer.Config
	err := env.Config(&c)
	peers, err2 := peer.New(c, env.HTTP)
	return &Function{env.DB, peers}, errors.Join(err, err2)
}

// Handle accepts, and answers 204; the same again changes nothing. It answers 403 to a controller that this one does not work
// with, and 409 when another hand-over has overtaken this one.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "application")
	if err != nil {
		return err
	}
	var in handover.Transfer
	if err := function.DecodeJSON(r, &in); err != nil {
		return err
	}
	from, err := f.peers.Caller(in.Controller, auth.From(r.Context()).Subject)
	if err != nil {
		return err
	}
	if err := in.Check(); err != nil {
		return err
	}
	if _, err := dialect.DecodeStored(in.Content.Dialect, []byte(in.Content.Descriptor)); err != nil {
		return err
	}
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		return handover.Accept(ctx, tx, from.Name, id, in.Epoch, in.Content)
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
