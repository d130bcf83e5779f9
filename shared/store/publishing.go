package store

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/events"
)

const (
	// publishFor bounds the time from the commit of an event to the end of its publishing, waiting for other events
	// included. A Broker may accept an event only once its consumers have taken it, so this covers cold starts and
	// their work. If a consumer hangs, the Broker answers after half a minute, when that call has timed out and the
	// Broker has tried again.
	publishFor = 60 * time.Second

	clearFor = 5 * time.Second // bounds the removal of accepted events from the outbox

	// mostOpen is how many commits may have events on their way at once. Beyond that the Broker is slower than we are:
	// the next commit waits for up to patience, which slows our callers down to the Broker's pace, and then leaves its
	// events in the outbox.
	mostOpen = 256
	patience = 2 * time.Second

	// mostRefused is how many unpublished events a process remembers, to try them again when it ends.
	mostRefused = 1000
)

// publishing hands committed events to the Broker in the background, while the callers are already answered. Nothing
// else publishes.
//
// Events about one subject are published one after the other, in the order of their commits; others in parallel, by at
// most atOnce workers. If one is refused, the queued ones about the same subject are left in the outbox too, so that
// the sweep, which goes by age, keeps their order. Workers end when the queue is empty.
type publishing struct {
	db     *DB
	atOnce int
	ctx    context.Context // of publishes, which outlive their calls; ends with Close
	halt   context.CancelFunc
	turns  chan struct{} // holds one for each commit with events on their way

	mu        sync.Mutex
	queue     []announcement
	busy      map[string]bool // subjects with an event at the Broker now
	workers   int
	open      int           // batches that have not ended
	idle      chan struct{} // closed when none is open
	closed    bool
	accepted  []*batch    // published, to be removed from the outbox
	unremoved []uuid.UUID // published, but removing them failed
	clearing  bool        // a worker is removing published events
	refused   []uuid.UUID // not published, the latest mostRefused of them
}

// batch is the events of one commit, or events that were left behind.
type batch struct {
	ctx     context.Context // of the call without its end: the publish is in its trace
	release func()
	turn    bool // it holds one of turns, to be given back
	waiting int  // events that are neither accepted nor refused yet
	sent    []uuid.UUID
	err     error
	ended   chan struct{}
}

// announcement is an event on its way.
type announcement struct {
	*batch

	event cloudevents.Event
}

func newPublishing(db *DB, atOnce int) *publishing {
	p := &publishing{
		db: db, atOnce: max(atOnce, 1), turns: make(chan struct{}, mostOpen), busy: map[string]bool{},
	}
	p.ctx, p.halt = context.WithCancel(context.Background())
	return p
}

// announce publishes the events of a commit in the background.
func (p *publishing) announce(ctx context.Context, emitted []cloudevents.Event) {
	if len(emitted) == 0 {
		return
	}
	if !p.turn(ctx) {
		slog.WarnContext(ctx, "the Broker is too slow: events stay in the outbox for the sweep", "events", len(emitted))
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, e := range emitted {
			if id, err := uuid.Parse(e.ID()); err == nil {
				p.refuse(id)
			}
		}
		return
	}
	p.begin(ctx, emitted, true)
}

// turn waits for up to patience until another commit may have events on their way.
func (p *publishing) turn(ctx context.Context) bool {
	select {
	case p.turns <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case p.turns <- struct{}{}:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

func (p *publishing) begin(ctx context.Context, list []cloudevents.Event, turn bool) *batch {
	b := &batch{turn: turn, waiting: len(list), ended: make(chan struct{})}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishFor)
	forget := context.AfterFunc(p.ctx, cancel)
	b.ctx, b.release = bounded, func() { forget(); cancel() }
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == 0 {
		p.idle = make(chan struct{})
	}
	p.open++
	if p.closed || len(list) == 0 {
		b.err = p.ctx.Err()
		p.end(b)
		return b
	}
	for _, e := range list {
		p.queue = append(p.queue, announcement{b, e})
	}
	for range min(len(list), p.atOnce-p.workers) {
		p.workers++
		go p.work()
	}
	return b
}

func (p *publishing) work() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for a, ok := p.next(); ok; a, ok = p.next() {
		p.mu.Unlock()
		err := p.publish(a)
		p.mu.Lock()
		p.record(a, err)
		if len(p.accepted) > 0 {
			p.clear(context.WithoutCancel(p.accepted[0].ctx))
		}
	}
	p.workers--
}

// next takes the oldest event off the queue whose subject is not busy.
func (p *publishing) next() (announcement, bool) {
	for i, a := range p.queue {
		if !p.busy[a.event.Subject()] {
			p.queue = append(p.queue[:i], p.queue[i+1:]...)
			p.busy[a.event.Subject()] = true
			return a, true
		}
	}
	return announcement{}, false
}

func (p *publishing) publish(a announcement) error {
	if err := a.ctx.Err(); err != nil {
		return fmt.Errorf("publish %s: %w", a.event.Type(), err)
	}
	events.Sign(&a.event, p.db.eventKey)
	return p.db.publisher.Publish(a.ctx, a.event)
}

// record records the result of publishing an event.
func (p *publishing) record(a announcement, err error) {
	subject := a.event.Subject()
	delete(p.busy, subject)
	p.one(a, err)
	if err == nil {
		return
	}
	kept := p.queue[:0]
	for _, behind := range p.queue {
		if behind.event.Subject() == subject {
			p.one(behind, err)
		} else {
			kept = append(kept, behind)
		}
	}
	clear(p.queue[len(kept):])
	p.queue = kept
}

// one counts an event of a batch as accepted or refused.
func (p *publishing) one(a announcement, err error) {
	b := a.batch
	id, malformed := uuid.Parse(a.event.ID())
	if err == nil {
		err = malformed
	}
	if err == nil {
		b.sent = append(b.sent, id)
	} else {
		p.refuse(id)
		if b.err == nil {
			b.err = err
		}
	}
	if b.waiting--; b.waiting > 0 {
		return
	}
	if len(b.sent) == 0 {
		p.end(b)
		return
	}
	p.accepted = append(p.accepted, b)
}

// refuse remembers that the event stays in the outbox.
func (p *publishing) refuse(id uuid.UUID) {
	if len(p.refused) == mostRefused {
		p.refused = slices.Delete(p.refused, 0, 1)
	}
	p.refused = append(p.refused, id)
}

// again publishes events that were left behind by others, or refused in this process.
func (p *publishing) again(ctx context.Context) error {
	p.mu.Lock()
	refused := p.refused
	p.refused = nil
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, clearFor)
	defer cancel()
	_, err := p.resend(ctx, LeftFor, leftMost, refused)
	return err
}

// clear removes accepted events from the outbox, including those that are accepted while it does so. If that fails
// (Postgres is away, or its connections are taken), they are kept for the next time, since they would be published
// again otherwise.
func (p *publishing) clear(ctx context.Context) {
	if p.clearing {
		return
	}
	p.clearing = true
	for more := true; more; more = len(p.accepted) > 0 {
		batches, sent := p.accepted, p.unremoved
		p.accepted, p.unremoved = nil, nil
		for _, b := range batches {
			sent = append(sent, b.sent...)
		}
		p.mu.Unlock()
		err := p.remove(ctx, sent)
		p.mu.Lock()
		if err != nil {
			p.unremoved = sent
			slog.WarnContext(ctx, "accepted events are still in the outbox", "events", len(sent), "error", err)
		}
		for _, b := range batches {
			p.end(b)
		}
	}
	p.clearing = false
}

// remove deletes published events, but those that some consumer has yet to take. If others left events behind, it publishes some of those too: the Broker is there
// now, and the sweep may be rare, so that functions can sleep.
func (p *publishing) remove(ctx context.Context, sent []uuid.UUID) error {
	ctx, cancel := context.WithTimeout(ctx, clearFor)
	defer cancel()
	var left bool
	if err := p.db.QueryRow(ctx, deleteOutbox, LeftFor.Seconds(), sent).Scan(&left); err != nil {
		return fmt.Errorf("clear the outbox: %w", err)
	}
	if !left || p.ctx.Err() != nil {
		return nil
	}
	if _, err := p.resend(ctx, LeftFor, leftMost, nil); err != nil {
		slog.WarnContext(ctx, "what others had to leave is not taken along", "error", err)
	}
	return nil
}

// resend publishes events of the outbox that are older than age or named by ids.
func (p *publishing) resend(ctx context.Context, age time.Duration, limit int, ids []uuid.UUID) (*batch, error) {
	left, err := p.db.left(ctx, age, limit, ids)
	if err != nil {
		return nil, err
	}
	return p.begin(ctx, left, false), nil
}

func (p *publishing) end(b *batch) {
	b.release()
	if b.err != nil && p.ctx.Err() == nil { // after Close that is expected
		slog.WarnContext(b.ctx, "events stay in the outbox for the sweep", "error", b.err)
	}
	if b.turn {
		<-p.turns
	}
	close(b.ended)
	if p.open--; p.open == 0 {
		close(p.idle)
	}
}

// flush waits until no batch is open, and tries once more to remove published events where that failed.
func (p *publishing) flush(ctx context.Context) error {
	if err := p.wait(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	if len(p.unremoved) > 0 {
		p.clear(ctx)
	}
	p.mu.Unlock()
	return p.wait(ctx) // for what that took along
}

// wait returns when no batch is open.
func (p *publishing) wait(ctx context.Context) error {
	p.mu.Lock()
	open, idle := p.open, p.idle
	p.mu.Unlock()
	if open == 0 {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("events are still on their way to the Broker: %w", context.Cause(ctx))
	}
}

// stop gives up what is on its way and lets nothing more begin.
func (p *publishing) stop() {
	p.halt()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.wait(context.Background()) // this ends, since p.halt has cancelled every publish and statement
}
