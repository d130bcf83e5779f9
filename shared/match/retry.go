package match

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// mostAlone bounds how many applications that are judged one by one share a transaction.
const mostAlone = 20

// RetryPending tries, together, the components that fitted nowhere, then those that had to stay where they should not
// be, then the updates that nobody has judged. It begins with the application from, in the order of ids, and handles
// only as many as fit into one call. Its own event starts the next call for the others, so the results for these are
// kept whatever happens to those. Only what may have got room is tried; nil = anything may have.
func RetryPending(ctx context.Context, tx *store.Tx, from uuid.UUID, s Settings, because string, room *Room) error {
	if err := Lock(ctx, tx); err != nil { // otherwise this could miss what a decision in progress leaves waiting
		return err
	}
	p, err := selectPending(ctx, tx, from)
	if err != nil {
		return err
	}
	if room != nil {
		if err := p.narrow(ctx, tx, room, s); err != nil {
			return err
		}
	}
	if err := PlaceAll(ctx, tx, p.waiting, s, because); err != nil {
		return err
	}
	for _, id := range p.misplaced {
		if err := RetryMisplaced(ctx, tx, id, s); err != nil {
			return err
		}
	}
	for _, id := range p.updated {
		if err := PlaceUpdate(ctx, tx, id, s); err != nil {
			return err
		}
	}
	if p.next == uuid.Max {
		return nil
	}
	return tx.Emit(ctx, events.ApplicationWaiting, p.next.String(), events.Application{ID: p.next, Reason: because})
}

// PlacePendingUpdates handles the updates that nobody has handled, as RetryPending does, and leaves alone what waits for room:
// whoever calls has made none. If there are more than one call handles, RetryPending goes on.
func PlacePendingUpdates(ctx context.Context, tx *store.Tx, s Settings, because string) error {
	if err := Lock(ctx, tx); err != nil {
		return err
	}
	found, err := application.UpdatePending(ctx, tx, uuid.Nil, mostAlone+1)
	if err != nil {
		return err
	}
	for i, id := range found {
		if i == mostAlone {
			return tx.Emit(ctx, events.ApplicationWaiting, id.String(), events.Application{ID: id, Reason: because})
		}
		if err := PlaceUpdate(ctx, tx, id, s); err != nil {
			return err
		}
	}
	return nil
}

// pending is what one call handles: every application before next, where uuid.Max comes after all.
type pending struct {
	waiting, misplaced, updated []uuid.UUID
	next                        uuid.UUID
}

func selectPending(ctx context.Context, tx *store.Tx, from uuid.UUID) (pending, error) {
	p := pending{next: uuid.Max}
	order := func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) } // as Postgres has it
	lists := []struct {
		find func(context.Context, store.Querier, uuid.UUID, int) ([]uuid.UUID, error)
		most int
		into *[]uuid.UUID
	}{
		{application.Waiting, MostTogether, &p.waiting},
		{application.Misplaced, mostAlone, &p.misplaced},
		{application.UpdatePending, mostAlone, &p.updated},
	}
	for _, l := range lists {
		found, err := l.find(ctx, tx, from, l.most+1)
		if err != nil {
			return p, err
		}
		if len(found) > l.most && order(found[l.most], p.next) < 0 {
			p.next = found[l.most]
		}
		*l.into = found
	}
	for _, l := range lists {
		end, _ := slices.BinarySearchFunc(*l.into, p.next, order)
		*l.into = (*l.into)[:end]
	}
	return p, nil
}

// Room says for whom a change may have made room.
type Room struct {
	On [][2]string // nodes, with their clusters: for what one of them could take
	Of uuid.UUID   // an application of which something else has changed; may be the zero UUID
}

// narrow leaves those for which there may be room.
func (p *pending) narrow(ctx context.Context, tx *store.Tx, room *Room, s Settings) error {
	if len(p.waiting)+len(p.misplaced) == 0 {
		return nil
	}
	inv, err := readInventoryAt(ctx, tx, room.On, s)
	if errors.Is(err, topology.ErrUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	first, err := topology.Beginning(ctx, tx)
	if err != nil || first || inv.linked || time.Since(inv.at) > topology.Fresh {
		return err // peers of links, or all that is known, may have become others
	}
	for _, list := range []struct {
		ids     *[]uuid.UUID
		mayMove func(*job.Job) bool
	}{
		{&p.waiting, nobody},
		{&p.misplaced, func(j *job.Job) bool { return j.IsMisplaced(job.Violating) || j.IsMisplaced(job.TooLarge) }},
	} {
		var may []uuid.UUID
		for _, id := range *list.ids {
			c, err := load(ctx, tx, id, list.mayMove)
			if err != nil {
				return err
			}
			if c == nil {
				continue
			}
			fits, err := c.hasRoom(inv)
			if err != nil {
				return err
			}
			if fits || id == room.Of {
				may = append(may, id)
			}
		}
		*list.ids = may
	}
	return nil
}

// hasRoom reports whether a node of the inventory could take a component that has no place, or may move. What the others
// take is left aside, and so is all that ties components to each other.
func (c *candidate) hasRoom(inv *inventory) (bool, error) {
	if len(c.app.Channels)+len(c.app.Spreads) > 0 {
		return true, nil // a change of a node may concern what is elsewhere
	}
	p := problemOf(c.app, c.list, inv)
	p.Affinities, p.Preferences = nil, nil
	for i := range p.Components {
		p.Components[i].Shared = nil
	}
	admitted, err := placement.Admitted(p)
	if err != nil {
		if refused(err) != "" {
			return true, nil // who places it says so
		}
		return false, err
	}
	for i := range c.list {
		if admitted[i] && c.list[i].decided() {
			return true, nil
		}
	}
	return false, nil
}

// RetryMisplaced moves jobs that could not leave their places before, if there is room now.
func RetryMisplaced(ctx context.Context, tx *store.Tx, id uuid.UUID, s Settings) error {
	if err := Lock(ctx, tx); err != nil {
		return err
	}
	a, err := application.Lock(ctx, tx, id)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err != nil || a.Desired != application.Running {
		return err
	}
	var misplaced []*job.Job
	for _, j := range a.Jobs {
		if j.IsMisplaced(job.Violating) {
			misplaced = append(misplaced, j)
		}
	}
	if _, err := moveAll(ctx, tx, a, misplaced, "a policy is violated there", true, s); err != nil {
		return err
	}
	if !slices.ContainsFunc(a.Jobs, misfits) {
		return nil
	}
	_, err = place(ctx, tx, id, s, misfits, "there may be what it asks for")
	return err
}
