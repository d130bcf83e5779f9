package inprocess

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"knative.dev/eventing/pkg/eventfilter"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/infra/runner/filter"
	"github.com/littoral-project/littoral/shared/events"
)

// Broker accepts events and hands each to the functions whose Triggers match it. It keeps what it accepted until
// it was delivered, in the order it came. Made by NewBroker; it delivers nothing before Connect.
type Broker struct {
	triggers []trigger
	settle   func(context.Context) error // waits until functions have published what they announced; nil = nothing to wait for

	mu        sync.Mutex
	consumers map[string]http.Handler // by function name
	immediate bool
	busy      bool
	queue     []Delivery
	accepted  []cloudevents.Event
	failure   error
	loses     func(cloudevents.Event) bool
	failed    []error // of deliveries that Publish made
}

// Delivery is an event that is still to be delivered: to one function, or to all that its Triggers name.
type Delivery struct {
	cloudevents.Event

	To       string // empty: to all
	Failures int    // so far
}

// trigger is the part of a Knative Trigger that this Broker knows.
type trigger struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Filter     *eventingv1.TriggerFilter           `json:"filter"`
		Filters    []eventingv1.SubscriptionsAPIFilter `json:"filters"`
		Subscriber ref                                 `json:"subscriber"`
		Sink       ref                                 `json:"sink"`
	} `json:"spec"`

	filter eventfilter.Filter
}

type ref struct {
	Ref struct {
		Name string `json:"name"`
	} `json:"ref"`
}

// NewBroker reads the Triggers and PingSources of every YAML file at the root of files.
func NewBroker(files fs.FS) (*Broker, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	b := &Broker{}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		for _, doc := range bytes.Split(text, []byte("\n---\n")) {
			var t trigger
			if err := yaml.Unmarshal(doc, &t); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			t.filter = filter.Of(eventingv1.TriggerSpec{Filter: t.Spec.Filter, Filters: t.Spec.Filters})
			b.triggers = append(b.triggers, t)
		}
	}
	return b, nil
}

// Connect names the functions that events go to. immediate makes Publish deliver what it accepts before it returns, and
// what that causes after it; else events wait for Drain or Take.
func (b *Broker) Connect(consumers map[string]http.Handler, immediate bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.consumers, b.immediate = consumers, immediate
}

// Fail makes every later Publish return err, as a Broker that is away would; nil ends that.
func (b *Broker) Fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failure = err
}

// Lose makes the Broker drop the events that it has accepted and for which which returns true; nil ends that.
func (b *Broker) Lose(which func(cloudevents.Event) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loses = which
}

// Publish accepts the event.
func (b *Broker) Publish(ctx context.Context, e cloudevents.Event) error {
	b.mu.Lock()
	if b.failure != nil {
		defer b.mu.Unlock()
		return b.failure
	}
	b.accepted = append(b.accepted, e.Clone())
	if b.loses != nil && b.loses(e) {
		defer b.mu.Unlock()
		return nil
	}
	b.queue = append(b.queue, Delivery{Event: e.Clone()})
	// One delivery at a time: an event that a delivery causes waits in the queue until that delivery has ended.
	drain := b.immediate && !b.busy
	b.mu.Unlock()
	if drain {
		if err := b.drain(context.WithoutCancel(ctx)); err != nil {
			b.mu.Lock()
			b.failed = append(b.failed, err)
			b.mu.Unlock()
		}
	}
	return nil // it was accepted; how its delivery went is no concern of who published it
}

// Drain delivers until nothing is left, including what deliveries cause. It continues after a failed delivery, which is
// not repeated, and returns all failures.
func (b *Broker) Drain(ctx context.Context) error {
	var failures []error
	for {
		failures = append(failures, b.drain(ctx), b.awaitIdle(ctx))
		b.mu.Lock()
		left := len(b.queue)
		b.mu.Unlock()
		if left == 0 || ctx.Err() != nil {
			return errors.Join(failures...)
		}
	}
}

func (b *Broker) awaitIdle(ctx context.Context) error {
	if b.settle == nil {
		return nil
	}
	return b.settle(ctx)
}

// drain delivers what is in the queue. It is called in the midst of publishing and so waits for none.
func (b *Broker) drain(ctx context.Context) error {
	b.mu.Lock()
	if b.busy {
		b.mu.Unlock()
		return nil // whoever drains now takes the rest as well
	}
	b.busy = true
	b.mu.Unlock()
	var failures []error
	for {
		b.mu.Lock()
		if len(b.queue) == 0 {
			b.busy = false
			b.mu.Unlock()
			return errors.Join(failures...)
		}
		d := b.queue[0]
		b.queue = b.queue[1:]
		b.mu.Unlock()
		if d.To != "" {
			failures = append(failures, b.deliverTo(ctx, d.To, d.Event))
			continue
		}
		failures = append(failures, b.deliver(ctx, d.Event))
	}
}

// Dequeue removes and returns what was accepted and not delivered, for a test that delivers in an order of its own.
func (b *Broker) Dequeue() []Delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.queue
	b.queue = nil
	return taken
}

// Next removes and returns what comes next, for a test that delivers on its own.
func (b *Broker) Next() (Delivery, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return Delivery{}, false
	}
	d := b.queue[0]
	b.queue = b.queue[1:]
	return d, true
}

// Again puts the event behind all others, for one function.
func (b *Broker) Again(e cloudevents.Event, to string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, Delivery{Event: e, To: to})
}

// Waiting returns how much is still to be delivered.
func (b *Broker) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

// Away reports whether it accepts nothing.
func (b *Broker) Away() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failure != nil
}

// ServeHTTP accepts events from functions in another process.
func (b *Broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, err := events.FromRequest(r)
	if err == nil {
		err = b.Publish(r.Context(), e)
	}
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// Accepted returns every event that was ever accepted, in order.
func (b *Broker) Accepted() []cloudevents.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.accepted)
}

// Failures returns the failed deliveries that Publish made.
func (b *Broker) Failures() []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.failed)
}

// Consumers returns the names of the functions that an event goes to, in the order of the Triggers.
func (b *Broker) Consumers(e cloudevents.Event) []string {
	var names []string
	for _, t := range b.triggers {
		if t.Kind == "Trigger" && t.filter.Filter(context.Background(), e) != eventfilter.FailFilter {
			names = append(names, t.Spec.Subscriber.Ref.Name)
		}
	}
	return names
}

// Deliver hands the event to every function that its Triggers name and returns the failures, once what they announced
// is published.
func (b *Broker) Deliver(ctx context.Context, e cloudevents.Event) error {
	return errors.Join(b.deliver(ctx, e), b.awaitIdle(ctx))
}

// DeliverTo hands the event to one function and returns once what that announced is published.
func (b *Broker) DeliverTo(ctx context.Context, name string, e cloudevents.Event) error {
	return errors.Join(b.deliverTo(ctx, name, e), b.awaitIdle(ctx))
}

func (b *Broker) deliver(ctx context.Context, e cloudevents.Event) error {
	var failures []error
	for _, name := range b.Consumers(e) {
		failures = append(failures, b.deliverTo(ctx, name, e))
	}
	return errors.Join(failures...)
}

// deliverTo hands the event to one function. A consumer that is not connected is no failure: the Triggers name
// functions that a test may have left out.
func (b *Broker) deliverTo(ctx context.Context, name string, e cloudevents.Event) error {
	b.mu.Lock()
	h, ok := b.consumers[name]
	b.mu.Unlock()
	if !ok {
		return nil
	}
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("Content-Type", cloudevents.ApplicationCloudEventsJSON)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code/100 != 2 {
		answer, _ := io.ReadAll(w.Body)
		return fmt.Errorf("%s answered %d to %s %s: %s", name, w.Code, e.Type(), e.ID(), bytes.TrimSpace(answer))
	}
	return nil
}

// Tick does what the PingSources would do next: it sends a tick to each connected function that has one, in order of
// their files, and then drains.
func (b *Broker) Tick(ctx context.Context) error {
	var failures []error
	for _, t := range b.triggers {
		if t.Kind == "PingSource" {
			failures = append(failures, b.TickOne(ctx, t.Spec.Sink.Ref.Name))
		}
	}
	return errors.Join(append(failures, b.Drain(ctx))...)
}

// Change sends to the named function what an ApiServerSource sends about an object. verb is an event type.
func (b *Broker) Change(ctx context.Context, name, verb, path string, object any) error {
	e := cloudevents.New()
	e.SetID(uuid.NewString())
	e.SetSource("http://kubernetes.default.svc.cluster.local")
	e.SetType(verb)
	e.SetSubject(path)
	e.SetTime(time.Now().UTC())
	if err := e.SetData(cloudevents.ApplicationJSON, object); err != nil {
		return err
	}
	return b.DeliverTo(ctx, name, e)
}

// TickOne sends one tick to the named function.
func (b *Broker) TickOne(ctx context.Context, name string) error {
	e := cloudevents.New()
	e.SetID(uuid.NewString())
	e.SetSource("/apis/v1/namespaces/default/pingsources/" + name)
	e.SetType(events.Tick)
	e.SetTime(time.Now().UTC())
	return b.DeliverTo(ctx, name, e)
}
