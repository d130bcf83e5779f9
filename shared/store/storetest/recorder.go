package storetest

import (
	"context"
	"slices"
	"sync"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/store"
)

// Recorder is a Publisher that keeps what it is given, and that can be told to fail.
type Recorder struct {
	mu     sync.Mutex
	events []cloudevents.Event
	err    error
}

// Publish records the event, or returns the error set by Fail.
func (r *Recorder) Publish(_ context.Context, e cloudevents.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	r.events = append(r.events, e.Clone())
	return nil
}

// Fail makes every later Publish return err, as a Broker that is away would; nil ends that.
func (r *Recorder) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// Events returns what was published so far, in order.
func (r *Recorder) Events() []cloudevents.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Holding is a Publisher that a test lets accept one event after the other: each is sent to Arrived and then waits for
// an answer from Answers, or the end of its context.
type Holding struct {
	Arrived chan cloudevents.Event
	Answers chan error
}

// NewHolding returns a Publisher that holds what it is given until the test ends.
func NewHolding() *Holding {
	return &Holding{Arrived: make(chan cloudevents.Event, 1000), Answers: make(chan error)}
}

// Publish implements events.Publisher.
func (h *Holding) Publish(ctx context.Context, e cloudevents.Event) error {
	h.Arrived <- e.Clone()
	select {
	case err := <-h.Answers:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

var recorders sync.Map // *store.DB -> *Recorder

// Published returns what the functions on a DB made by New have published, in order, once all that they have committed
// so far is out. Given types, it returns the events of these.
func Published(db *store.DB, types ...string) []cloudevents.Event {
	_ = db.Flush(context.Background()) // a publish has an end of its own
	all := RecorderOf(db).Events()
	if len(types) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(e cloudevents.Event) bool { return !slices.Contains(types, e.Type()) })
}

// RecorderOf returns the Recorder behind a DB made by New. It panics for any other.
func RecorderOf(db *store.DB) *Recorder {
	r, ok := recorders.Load(db)
	if !ok {
		panic("storetest: this DB has no recorder; make it with storetest.New")
	}
	return r.(*Recorder) // only Recorders are stored
}
