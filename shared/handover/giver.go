package handover

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Request begins to hand the running application over to the peer; "" means any that takes it. Nothing changes for the
// application yet. Asking for the same twice changes nothing. The error is NotFound, or Conflict.
func Request(ctx context.Context, tx *store.Tx, id uuid.UUID, to, reason string) (*Handover, error) {
	return request(ctx, tx, id, to, reason, false)
}

// Overflow is Request for an application of which something fits nowhere here, to any that takes it. It stays if it fits here before
// it is released.
func Overflow(ctx context.Context, tx *store.Tx, id uuid.UUID, reason string) (*Handover, error) {
	return request(ctx, tx, id, "", reason, true)
}

func request(ctx context.Context, tx *store.Tx, id uuid.UUID, to, reason string, overflow bool) (*Handover, error) {
	h, err := lock(ctx, tx, id, Giver, Home)
	if err != nil {
		return nil, err
	}
	switch {
	case h.Side == Receiver && h.State != Over:
		return nil, problem.New(problem.Conflict, "controller %s has given application %s to this one, and only that one hands it over to "+
			"another; give it back first", h.Peer, id)
	case h.Side == Giver && h.State == Released:
		return nil, problem.New(problem.Conflict, "application %s is with controller %s already; call it back first", id, h.Peer)
	case h.State == Offered && h.Overflow && !overflow: // a person wants it to go whether it fits here or not, under a new epoch
	case h.State == Offered && h.Peer == to:
		return h, nil
	case h.State == Offered:
		return nil, problem.New(problem.Conflict, "application %s is being handed over to %s", id, toWhom(h.Peer))
	}
	a, err := application.Lock(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	if a.Desired != application.Running {
		return nil, problem.New(problem.Conflict, "application %s is not meant to run here", id)
	}
	h.Side, h.State, h.Peer, h.Recalled, h.Reason, h.Overflow, h.Until = Giver, Offered, to, false, reason, overflow, nil
	h.Epoch++
	h.Content = contentOf(a)
	if err := h.save(ctx, tx, fmt.Sprintf("to be handed over to %s: %s", toWhom(to), reason)); err != nil {
		return nil, err
	}
	return h, h.wake(ctx, tx)
}

const selectRested = `select id from unnest($1::uuid[]) id where not exists (select from handovers h where h.application_id = id
and (h.state not in ('home', 'over') or h.state = 'home' and h.changed_at > now() - $2::interval)) order by 1`

// Rested returns those of the applications that are not handed over at present, and that neither came home nor were taken by no peer
// less than so long ago, in the order of ids.
func Rested(ctx context.Context, q store.Querier, ids []uuid.UUID, rest time.Duration) ([]uuid.UUID, error) {
	return store.Collect(ctx, q, "read hand-overs", pgx.RowTo[uuid.UUID], selectRested, ids, rest)
}

func toWhom(peer string) string {
	if peer == "" {
		return "any controller that takes it"
	}
	return "controller " + peer
}

func (h *Handover) wake(ctx context.Context, tx *store.Tx) error {
	return tx.Emit(ctx, events.HandoverRequested, h.Application.String(), events.Handover{ID: h.Application, Epoch: h.Epoch})
}

// Remind wakes the function that carries hand-overs out, for one that a crash has left undone.
func Remind(ctx context.Context, tx *store.Tx, id uuid.UUID) error {
	h, err := known(ctx, tx, id)
	if err != nil || h == nil || h.State != Offered {
		return err
	}
	return h.wake(ctx, tx)
}

// Choose notes which peer an application that any may take is offered to.
func Choose(ctx context.Context, tx *store.Tx, id uuid.UUID, epoch int64, peer, why string) error {
	h, err := known(ctx, tx, id)
	if err != nil || h == nil || h.State != Offered || h.Epoch != epoch || h.Peer != "" {
		return err
	}
	h.Peer = peer
	return h.save(ctx, tx, fmt.Sprintf("offered to controller %s: %s", peer, why))
}

// Current returns the application as it is to be accepted by the peer; nil when the hand-over has ended. It may have changed since
// it was requested.
func Current(ctx context.Context, tx *store.Tx, id uuid.UUID, epoch int64) (*Handover, error) {
	h, err := known(ctx, tx, id)
	if err != nil || h == nil || h.State != Offered || h.Epoch != epoch {
		return nil, err
	}
	a, err := application.Lock(ctx, tx, id)
	if problem.KindOf(err) == problem.NotFound || err == nil && a.Desired != application.Running {
		h.State = Home
		return nil, h.save(ctx, tx, "not handed over: it is not meant to run any more")
	}
	if err != nil {
		return nil, err
	}
	if h.Overflow {
		stuck, err := application.IsStuck(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		if !stuck {
			h.State = Home
			return nil, h.save(ctx, tx, "stays here: it fits here now")
		}
	}
	if a.Version == h.Content.Version {
		return h, nil
	}
	h.Epoch++ // what a receiver has stored under the former epoch is out of date
	h.Content.Descriptor, h.Content.Needs, h.Content.Version = a.Descriptor, a.Needs, a.Version
	if err := h.save(ctx, tx, "it was changed meanwhile"); err != nil {
		return nil, err
	}
	return nil, h.wake(ctx, tx)
}

// Let makes this controller stop acting, after the peer has accepted: from the commit on the peer gets leases. It does nothing
// if the hand-over has ended, or if the application has changed since the peer got it; then it is offered again.
func Let(ctx context.Context, tx *store.Tx, id uuid.UUID, epoch int64, address string, s Settings) error {
	h, err := Current(ctx, tx, id, epoch)
	if err != nil || h == nil {
		return err
	}
	if h.Until, err = after(ctx, tx, s.Lease+s.Margin); err != nil {
		return err
	}
	h.State = Released
	message := fmt.Sprintf("released to controller %s: %s", h.Peer, h.Reason)
	if err := h.save(ctx, tx, message); err != nil {
		return err
	}
	if err := tickFor(ctx, tx); err != nil {
		return err
	}
	return application.Release(ctx, tx, id, application.Away{Controller: h.Peer, Address: address}, message)
}

// Keep ends a hand-over that no peer takes; the application stays.
func Keep(ctx context.Context, tx *store.Tx, id uuid.UUID, epoch int64, why string) error {
	h, err := known(ctx, tx, id)
	if err != nil || h == nil || h.State != Offered || h.Epoch != epoch {
		return err
	}
	h.State = Home
	return h.save(ctx, tx, "stays here: "+why)
}

// Recall asks for an application that a peer has: when it renews its lease it is told, stops, and gives the application back.
func Recall(ctx context.Context, tx *store.Tx, id uuid.UUID, reason string) (*Handover, error) {
	h, err := known(ctx, tx, id)
	switch {
	case err != nil:
		return nil, err
	case h == nil || h.Side != Giver || h.State != Released && h.State != Offered:
		return nil, problem.New(problem.Conflict, "application %s is with no other controller that has it from this one", id)
	case h.State == Offered:
		h.State = Home
		return h, h.save(ctx, tx, "stays here: "+reason)
	case h.Recalled:
		return h, nil
	}
	h.Recalled, h.Reason = true, reason
	return h, h.save(ctx, tx, "called back from controller "+h.Peer+": "+reason)
}

// Claim is what a receiver says of one application when it asks for a lease.
type Claim struct {
	ID      uuid.UUID `json:"id"`
	Epoch   int64     `json:"epoch"`
	State   State     `json:"state"` // accepted, held, returning
	Gone    bool      `json:"gone,omitempty"`
	Status  string    `json:"status,omitempty"`
	Message string    `json:"message,omitempty"`
	Content *Content  `json:"content,omitempty"` // when it has changed since it was last acknowledged
}

// Lease is the answer to a claim.
type Lease struct {
	ID      uuid.UUID `json:"id"`
	Epoch   int64     `json:"epoch"`
	Answer  Answer    `json:"answer"`
	Seconds float64   `json:"seconds,omitempty"` // how long it lasts, from the moment in which the receiver asked
	Recall  bool      `json:"recall,omitempty"`  // the giver wants the application back
	Version int64     `json:"version,omitempty"` // of the content that the giver knows
}

// Answer is what a receiver may do.
type Answer string

// The answers.
const (
	Granted Answer = "granted" // act, while the lease lasts
	Wait    Answer = "wait"    // the giver still acts; ask again
	Ended   Answer = "over"    // the receiver has no part in it any more
)

// Grant answers one claim of the peer.
func Grant(ctx context.Context, tx *store.Tx, peer, address string, c Claim, s Settings, lostAfter time.Duration) (Lease, error) {
	answer := Lease{ID: c.ID, Epoch: c.Epoch, Answer: Ended}
	h, err := known(ctx, tx, c.ID)
	if err != nil || h == nil || h.Side != Giver || h.Peer != peer || h.Epoch != c.Epoch {
		return answer, err
	}
	switch {
	case h.State == Offered:
		answer.Answer = Wait
		return answer, nil
	case h.State != Released:
		return answer, nil
	}
	if c.Content != nil && c.Content.Version > h.Content.Version {
		h.Content = c.Content
	}
	answer.Version = h.Content.Version
	switch {
	case c.Gone:
		h.State = Home
		if err := h.save(ctx, tx, "controller "+peer+" has deleted it"); err != nil {
			return answer, err
		}
		return answer, application.Forgotten(ctx, tx, c.ID)
	case c.State == Returning:
		return answer, h.takeBack(ctx, tx, "controller "+peer+" gave it back", lostAfter)
	}
	if h.Until, err = after(ctx, tx, s.Lease+s.Margin); err != nil {
		return answer, err
	}
	if err := h.save(ctx, tx, ""); err != nil {
		return answer, err
	}
	application.Reported(tx, c.ID, application.Away{Controller: peer, Address: address, Status: c.Status, Message: c.Message})
	answer.Answer, answer.Seconds, answer.Recall = Granted, s.Lease.Seconds(), h.Recalled
	return answer, nil
}

// takeBack makes this controller act again, under a new epoch that ends what anybody else still has.
func (h *Handover) takeBack(ctx context.Context, tx *store.Tx, why string, lostAfter time.Duration) error {
	h.State, h.Recalled, h.Until = Home, false, nil
	h.Epoch++
	if err := h.save(ctx, tx, why); err != nil {
		return err
	}
	return application.Resume(ctx, tx, h.Application, h.Content.Descriptor, h.Content.Needs, why, lostAfter)
}

const (
	// A giver that was away for long cannot tell a receiver that is silent from one that it did not hear. It waits once more.
	wakeUp = `update handovers set looked_at = now(),
until = case when looked_at < now() - $1::interval then greatest(until, now() + $2::interval) else until end
where side = 'giver' and state = 'released'`

	selectSilent = `select application_id from handovers where side = 'giver' and state = 'released' and until <= now()
order by application_id limit $1`
)

// Silent returns the applications whose receiver has been silent for its lease and the margin, as far as this controller was
// there to hear it.
func Silent(ctx context.Context, tx *store.Tx, s Settings) ([]uuid.UUID, error) {
	if _, err := tx.Exec(ctx, wakeUp, s.Lease, s.Lease); err != nil {
		return nil, fmt.Errorf("look after hand-overs: %w", err)
	}
	return store.Collect(ctx, tx, "find silent receivers", pgx.RowTo[uuid.UUID], selectSilent, MostListed)
}

// TakeOver takes back an application whose receiver is silent. It does nothing if a lease was granted meanwhile.
func TakeOver(ctx context.Context, tx *store.Tx, id uuid.UUID, lostAfter time.Duration) error {
	h, err := known(ctx, tx, id)
	if err != nil || h == nil || h.Side != Giver || h.State != Released || !h.Late {
		return err
	}
	return h.takeBack(ctx, tx, "taken over from controller "+h.Peer+", which is silent", lostAfter)
}
