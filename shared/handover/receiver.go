package handover

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Accept stores an application that the peer hands over. Nothing is done with it until the peer grants a lease. A repeat changes
// nothing. The error is Conflict for an application of our own, or one that was handed over anew meanwhile.
func Accept(ctx context.Context, tx *store.Tx, peer string, id uuid.UUID, epoch int64, content Content) error {
	h, err := lock(ctx, tx, id, Receiver, Over)
	if err != nil {
		return err
	}
	switch {
	case h.Side == Giver:
		return problem.New(problem.Conflict, "application %s is one of this controller's own", id)
	case epoch < h.Epoch:
		return problem.New(problem.Conflict, "application %s was handed over under controller epoch %d, which is newer than %d", id, h.Epoch, epoch)
	case epoch == h.Epoch:
		return nil
	case h.Epoch > 0 && h.Peer != peer:
		return problem.New(problem.Conflict, "application %s belongs to controller %s", id, h.Peer)
	}
	if h.Epoch == 0 {
		if _, err := application.Get(ctx, tx, id); problem.KindOf(err) != problem.NotFound {
			if err == nil {
				err = problem.New(problem.Conflict, "application %s is one of this controller's own", id)
			}
			return err
		}
	}
	if h.State == Held || h.State == Returning { // the giver has taken it back since, and this controller has not heard of it
		if err := application.Yield(ctx, tx, id, "controller "+peer+" has taken it back and hands it over again"); err != nil {
			return err
		}
	}
	h.State, h.Peer, h.Epoch, h.Content, h.Until, h.Recalled = Accepted, peer, epoch, &content, nil, false
	if err := h.save(ctx, tx, "accepted from controller "+peer); err != nil {
		return err
	}
	return tickFor(ctx, tx)
}

// MayBegin takes note that the peer has released an application that was accepted from it: the first lease can be had. It does
// nothing for any other.
func MayBegin(ctx context.Context, tx *store.Tx, peer string, id uuid.UUID, epoch int64) error {
	h, err := known(ctx, tx, id)
	if err != nil || h == nil || h.Side != Receiver || h.Peer != peer || h.Epoch != epoch || h.State != Accepted {
		return err
	}
	return tx.Emit(ctx, events.HandoverReleased, id.String(), events.Handover{ID: id, Epoch: epoch})
}

// ClaimsOf returns what this controller asks a peer for: a claim for each application that it has from it, by the name of the
// peer.
func ClaimsOf(ctx context.Context, q store.Querier) (map[string][]Claim, error) {
	open, err := Open(ctx, q, Receiver, Accepted, Held, Returning)
	if err != nil {
		return nil, err
	}
	claims := map[string][]Claim{}
	for _, h := range open {
		c := Claim{ID: h.Application, Epoch: h.Epoch, State: h.State}
		switch h.State {
		case Held:
			a, err := application.Get(ctx, q, h.Application)
			switch {
			case problem.KindOf(err) == problem.NotFound:
				c.Gone = true
			case err != nil:
				return nil, err
			default:
				status, message := a.Status()
				c.Status, c.Message = string(status), message
				if a.Version > h.Content.Version {
					c.Content = contentOf(a)
				}
			}
		case Returning:
			c.Content = h.Content
		}
		claims[h.Peer] = append(claims[h.Peer], c)
	}
	return claims, nil
}

func contentOf(a *application.Application) *Content {
	return &Content{Name: a.Name, Dialect: a.Dialect, Descriptor: a.Descriptor, Needs: a.Needs, Owner: a.Owner, Version: a.Version}
}

// Took does what the giver answered to a claim. asked is when this controller asked, by its own clock: the lease is counted from
// then, so that it ends here before it ends there, however long the answer took.
func Took(ctx context.Context, tx *store.Tx, peer string, c Claim, l Lease, asked time.Time, lostAfter time.Duration) error {
	h, err := known(ctx, tx, c.ID)
	if err != nil || h == nil || h.Side != Receiver || h.Peer != peer || h.Epoch != c.Epoch || h.State == Over {
		return err // something else has happened meanwhile
	}
	switch l.Answer {
	case Granted:
		return h.granted(ctx, tx, c, l, asked, lostAfter)
	case Ended:
		return h.end(ctx, tx)
	}
	return nil
}

// end is what follows when the giver says that this controller has no part in the application any more.
func (h *Handover) end(ctx context.Context, tx *store.Tx) error {
	before := h.State
	h.State, h.Until = Over, nil
	message := "controller " + h.Peer + " has it back"
	if err := h.save(ctx, tx, message); err != nil || before != Held {
		return err
	}
	return application.Yield(ctx, tx, h.Application, message)
}

func (h *Handover) granted(ctx context.Context, tx *store.Tx, c Claim, l Lease, asked time.Time, lostAfter time.Duration) error {
	until := asked.Add(time.Duration(l.Seconds * float64(time.Second)))
	now, err := Now(ctx, tx)
	if err != nil {
		return err
	}
	if !now.Before(until) || h.State == Returning || c.State != h.State {
		return nil // the answer came too late, or to another question
	}
	message := ""
	if h.State == Accepted {
		message = "responsible for it, with a lease of controller " + h.Peer
	}
	begins := h.State == Accepted
	h.State, h.Until = Held, &until
	if c.Content != nil && l.Version == c.Content.Version {
		h.Content = c.Content
	}
	if err := h.save(ctx, tx, message); err != nil {
		return err
	}
	switch {
	case begins:
		return application.Adopt(ctx, tx, application.Adoption{
			ID: h.Application, Name: h.Content.Name, Dialect: h.Content.Dialect, Descriptor: h.Content.Descriptor, Needs: h.Content.Needs,
			Owner: h.Content.Owner, Version: h.Content.Version, Until: until,
		}, "handed over by controller "+h.Peer, lostAfter)
	case l.Recall:
		return h.giveBack(ctx, tx, "controller "+h.Peer+" calls it back")
	}
	application.ActUntil(tx, h.Application, until)
	return nil
}

// Return gives an application back to the controller that it comes from. The error is NotFound, or Conflict.
func Return(ctx context.Context, tx *store.Tx, id uuid.UUID, reason string) (*Handover, error) {
	h, err := known(ctx, tx, id)
	switch {
	case err != nil:
		return nil, err
	case h == nil || h.Side != Receiver || h.State != Held && h.State != Returning:
		return nil, problem.New(problem.Conflict, "application %s is not from another controller", id)
	case h.State == Returning:
		return h, nil
	}
	return h, h.giveBack(ctx, tx, reason)
}

// giveBack stops acting; the giver is told with the next claim.
func (h *Handover) giveBack(ctx context.Context, tx *store.Tx, reason string) error {
	a, err := application.Get(ctx, tx, h.Application)
	switch {
	case problem.KindOf(err) == problem.NotFound:
		return nil // deleted, which the next claim says
	case err != nil:
		return err
	}
	h.State, h.Reason, h.Until, h.Content = Returning, reason, nil, contentOf(a)
	message := "given back to controller " + h.Peer + ": " + reason
	if err := h.save(ctx, tx, message); err != nil {
		return err
	}
	return application.Yield(ctx, tx, h.Application, message)
}
