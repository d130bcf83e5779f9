// Package renew asks the controllers that this one has applications from for leases, tells them what the applications do, and
// does what they answer.
package renew

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/handover"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{events.Tick, events.HandoverReleased},
	Emits: []string{
		events.ApplicationSubmitted, events.ApplicationFirst, events.ApplicationStopped, events.ApplicationDeleted, events.JobReady,
	},
	Class:       function.Remote,
	Concurrency: 1,
	Needs:       []function.Need{function.ClientCredentials, function.Peers},
}

// Function is the task with its settings and store.
type Function struct {
	db          *store.DB
	log         *slog.Logger
	peers       *peer.Client
	application application.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB, log: env.Log}
	var err error
	f.peers, err = peer.Open(env.Config, env.HTTP)
	return f, errors.Join(err, env.Config(&f.application))
}

// Run asks every giver, all at once: one that does not answer keeps no other. Its applications stop being acted on when their
// leases end, without anybody having to do something.
func (f *Function) Run(ctx context.Context) error {
	claims, err := handover.ClaimsOf(ctx, f.db)
	if err != nil || len(claims) == 0 {
		return err
	}
	var asking sync.WaitGroup
	for name, list := range claims {
		asking.Go(func() {
			if err := f.renew(ctx, name, list); err != nil {
				f.log.WarnContext(ctx, "leases were not renewed", "controller", name, "error", err.Error())
			}
		})
	}
	asking.Wait()
	return nil
}

func (f *Function) renew(ctx context.Context, name string, claims []handover.Claim) error {
	giver, err := f.peers.Named(name)
	if err != nil {
		return err
	}
	asked, err := handover.Now(ctx, f.db) // before the question, so that the answer may take as long as it likes
	if err != nil {
		return err
	}
	var answer handover.Leases
	if err := f.peers.Tell(ctx, giver, http.MethodPost, "/controller/leases", handover.Claimed, "", "",
		handover.Claims{Claims: claims}, &answer); err != nil {
		return err
	}
	for i, l := range answer.Leases {
		if i >= len(claims) || l.ID != claims[i].ID {
			return errors.New("the leases are not those that were asked for")
		}
		err := f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			return handover.Took(ctx, tx, name, claims[i], l, asked, f.application.LostAfter)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
