// Package lease renews the leases under which another controller has applications of this one, takes in what that one reports
// of them, and tells it what to give back.
package lease

import (
	"context"
	"errors"
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/handover"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:  []function.Route{{Pattern: "POST /controller/leases", Role: auth.Controller}},
	Emits:   []string{events.ApplicationStarted, events.ApplicationUpdated, events.ApplicationDeleted, events.JobReady},
	Needs:   []function.Need{function.ClientCredentials, function.Peers},
	MaxBody: 8 << 20,
}

// Function is the operation with its settings and store.
type Function struct {
	db          *store.DB
	peers       *peer.Client
	handover    handover.Settings
	application application.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	var err error
	f.peers, err = peer.Open(env.Config, env.HTTP)
	return f, errors.Join(err, env.Config(&f.handover), env.Config(&f.application), f.handover.Check())
}

// Handle answers a lease for each claim, each in a transaction of its own: what one application waits for keeps no other.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var in peer.Event[handover.Claims]
	if err := function.DecodeJSON(r, &in); err != nil {
		return err
	}
	if err := in.Check(handover.Claimed); err != nil {
		return err
	}
	from, err := f.peers.Sender(in.Head, auth.From(r.Context()).Subject)
	if err != nil {
		return err
	}
	if err := in.Data.Check(); err != nil {
		return err
	}
	answer := handover.Leases{Leases: []handover.Lease{}}
	for _, c := range in.Data.Claims {
		err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
			l, err := handover.Grant(ctx, tx, from.Name, from.Address, c, f.handover, f.application.LostAfter)
			if err == nil {
				answer.Leases = append(answer.Leases, l)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return function.WriteJSON(w, http.StatusOK, answer)
}
