// Package accept takes what another controller tells of an application that it hands over: first the application itself, which is
// stored, and on which nothing acts before that one grants a lease; then that it is released, so that a lease can be had.
package accept

import (
	"context"
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
	Emits:  []string{events.ClockWanted, events.HandoverReleased},
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
	peers, err := peer.Open(env.Config, env.HTTP)
	return &Function{env.DB, peers}, err
}

// Handle takes the event, and answers 204; the same again changes nothing. It answers 403 to a controller that this one does not
// work with, and 409 when another hand-over has overtaken this one.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "application")
	if err != nil {
		return err
	}
	var in peer.Event[handover.Transfer]
	if err := function.DecodeJSON(r, &in); err != nil {
		return err
	}
	if err := in.Check(handover.Transferred, handover.LetGo); err != nil {
		return err
	}
	from, err := f.peers.Sender(in.Head, auth.From(r.Context()).Subject)
	if err != nil {
		return err
	}
	if err := in.Data.Check(in.Type); err != nil {
		return err
	}
	if in.Type == handover.Transferred {
		if _, err := dialect.DecodeStored(in.Data.Content.Dialect, []byte(in.Data.Content.Descriptor)); err != nil {
			return err
		}
	}
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		if in.Type == handover.LetGo {
			return handover.MayBegin(ctx, tx, from.Name, id, in.Data.Epoch)
		}
		return handover.Accept(ctx, tx, from.Name, id, in.Data.Epoch, *in.Data.Content)
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
