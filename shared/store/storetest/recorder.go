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

var recorders sync.Map // *store.DB -> *Recorder

// Published returns what the functions on a DB made by New have published so far, in order.
func Published(db *store.DB) []cloudevents.Event { return RecorderOf(db).Events() }

// RecorderOf returns the Recorder behind a DB made by New. It panics for any other.
func RecorderOf(db *store.DB) *Recorder {
	r, ok := recorders.Load(db)
	if !ok {
		panic("storetest: this DB has no recorder; make it with storetest.New")
	}
	return r.(*Recorder) //nolint:forcetypeassert // only Recorders are stored
}
