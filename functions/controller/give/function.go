// Package give carries out a hand-over: it asks the other controllers what they could do, lets one accept the application, and
// then makes this one stop acting on it.
package give

import (
	"context"
	"errors"
	"fmt"
	"sync"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/handover"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{events.HandoverRequested},
	Emits:    []string{events.HandoverRequested, events.ApplicationStopped, events.JobReady, events.ClockWanted},
	Class:    function.Remote,
	Needs:    []function.Need{function.ClientCredentials, function.Peers},
}

// Function is the worker with its settings and store.
type Function struct {
	db       *store.DB
	peers    *peer.Client
	handover handover.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	var err error
	f.peers, err = peer.Open(env.Config, env.HTTP)
	return f, errors.Join(err, env.Config(&f.handover), f.handover.Check())
}

// Work does the steps that are left. Each may be repeated, by two workers at once too: the epoch tells one hand-over from
// another, and the receiver does not act before this controller has released the application.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	about, err := events.Data[events.Handover](e)
	if err != nil {
		return err
	}
	h, err := handover.Get(ctx, f.db, about.ID)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	switch {
	case err != nil || h.Side != handover.Giver || h.Epoch != about.Epoch:
		return err
	case h.State == handover.Released: // and the receiver may not have been told
		return f.letGo(ctx, h)
	case h.State != handover.Offered:
		return nil
	}
	to, why, err := f.choose(ctx, h)
	switch {
	case err != nil:
		return err
	case why != "":
		return f.tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			return handover.Keep(ctx, tx, h.Application, h.Epoch, why)
		})
	}
	var now *handover.Handover
	err = f.tx(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		now, err = handover.Current(ctx, tx, h.Application, h.Epoch)
		return err
	})
	if err != nil || now == nil {
		return err
	}
	err = f.tell(ctx, to, handover.Transferred, h, now.Content)
	if why := refused(err); why != "" {
		return f.tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			return handover.Keep(ctx, tx, h.Application, h.Epoch, why)
		})
	}
	if err != nil {
		return err
	}
	err = f.tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		return handover.Let(ctx, tx, h.Application, h.Epoch, to.Address, f.handover)
	})
	if err != nil {
		return err
	}
	after, err := handover.Get(ctx, f.db, h.Application)
	if err != nil || after.State != handover.Released || after.Epoch != h.Epoch {
		return err // offered again, since it was changed meanwhile
	}
	return f.letGo(ctx, after)
}

// letGo tells the receiver that it may begin. One that cannot be reached asks for its lease at its next tick in any case; until
// then the Broker repeats, and what it gives up on is a dead letter that can be sent again.
func (f *Function) letGo(ctx context.Context, h *handover.Handover) error {
	to, err := f.peers.Named(h.Peer)
	if err != nil {
		return nil // no peer any more: it is not told, and taken over when its lease is over
	}
	err = f.tell(ctx, to, handover.LetGo, h, nil)
	if refused(err) != "" {
		return nil
	}
	return err
}

func (f *Function) tell(ctx context.Context, to peer.Peer, typ string, h *handover.Handover, content *handover.Content) error {
	id := h.Application.String()
	return f.peers.Put(ctx, to, "/controller/applications/"+id, typ, handover.EventID(typ, h.Application, h.Epoch), id,
		handover.Transfer{Epoch: h.Epoch, Content: content})
}

func (f *Function) tx(ctx context.Context, do func(context.Context, *store.Tx) error) error {
	return f.db.Tx(ctx, do)
}

// refused says why a peer does not do what it was asked; "" when it did, or may do it when it is asked again.
func refused(err error) string {
	if err == nil || problem.KindOf(err) == problem.Unavailable || problem.KindOf(err) == problem.Internal {
		return ""
	}
	return err.Error()
}

// choose returns the peer that is to accept the application, or why none is.
func (f *Function) choose(ctx context.Context, h *handover.Handover) (to peer.Peer, why string, err error) {
	if h.Peer != "" {
		if to, err = f.peers.Named(h.Peer); err != nil {
			return to, "it is no peer any more", nil
		}
		o, err := f.ask(ctx, to, h)
		switch {
		case refused(err) != "":
			return to, refused(err), nil
		case err != nil:
			return to, "", err
		case !o.Fits():
			return to, "controller " + to.Name + ": " + o.Why(), nil
		}
		return to, "", nil
	}
	peers := f.peers.Peers()
	offers, faults := make([]handover.Offer, len(peers)), make([]error, len(peers))
	var asking sync.WaitGroup
	for i, p := range peers {
		asking.Go(func() { offers[i], faults[i] = f.ask(ctx, p, h) })
	}
	asking.Wait()
	best := -1
	for i, o := range offers {
		switch {
		case faults[i] != nil:
			why += fmt.Sprintf("; controller %s: %s", peers[i].Name, faults[i])
		case !o.Fits():
			why += fmt.Sprintf("; controller %s: %s", peers[i].Name, o.Why())
		case best < 0 || o.Better(offers[best]):
			best = i
		}
	}
	if best < 0 {
		return to, "no controller takes it" + why, nil
	}
	why = fmt.Sprintf("objective %.1f, bound %.1f, price %.1f", offers[best].Objective, offers[best].Bound, offers[best].Price)
	err = f.tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		return handover.Choose(ctx, tx, h.Application, h.Epoch, peers[best].Name, why)
	})
	return peers[best], "", err
}

// ask asks a peer what it could do.
func (f *Function) ask(ctx context.Context, p peer.Peer, h *handover.Handover) (o handover.Offer, err error) {
	err = f.peers.Post(ctx, p, "/controller/offers", "application/yaml", []byte(h.Content.Descriptor), &o)
	return o, err
}
