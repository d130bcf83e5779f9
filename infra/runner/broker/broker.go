// Package broker is the Broker of the laptop host: it stores the events that it accepts in Postgres, and delivers them
// like Knative.
//
// Accepting an event stores one row per matching Trigger before the sender gets its answer, so a kill -9 loses nothing.
// The row is deleted when its delivery is done. Deliveries start at once in this process; nothing polls. Delivery is
// at-least-once, as with any Broker: after a crash between a delivery and the deletion of its row, the event is
// delivered again.
package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"k8s.io/apimachinery/pkg/types"
	knbroker "knative.dev/eventing/pkg/broker"

	"github.com/littoral-project/littoral/infra/runner/manifests"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Options of a Broker.
type Options struct {
	DatabaseURL string         // the schema "broker" in it is created and used only by this package
	Set         *manifests.Set // the Brokers and Triggers to act for
	Client      *http.Client   // delivers; resolves cluster-local addresses (package mesh)
	Log         *slog.Logger   // nil = slog.Default
}

// Parallel is the number of concurrent deliveries of one Trigger. It is below the concurrency limit of a function, so
// that other callers still get in.
const Parallel = 8

// connections of each of the two pools: one for commits that must be on disk, one for commits that may be lost and
// repeated.
const connections = 6

// Broker accepts, keeps and delivers events.
type Broker struct {
	options  Options
	log      *slog.Logger
	durable  *pgxpool.Pool
	relaxed  *pgxpool.Pool // its commits do not wait for the disk
	brokers  map[types.NamespacedName][]*trigger
	triggers map[string]*trigger

	started  atomic.Bool
	mu       sync.Mutex
	stopping bool
	inFlight sync.WaitGroup
	halt     context.CancelFunc // cancels deliveries that outlast the drain
	ctx      context.Context    // of deliveries, which belong to no request
}

// Open prepares the store. Nothing is accepted or delivered before Start.
func Open(ctx context.Context, o Options) (*Broker, error) {
	b := &Broker{
		options: o, log: cmp.Or(o.Log, slog.Default()),
		brokers: map[types.NamespacedName][]*trigger{}, triggers: map[string]*trigger{},
	}
	for _, key := range manifests.Sorted(o.Set.Brokers) {
		b.brokers[key] = nil
	}
	for _, key := range manifests.Sorted(o.Set.Triggers) {
		t, err := newTrigger(o, key)
		if err != nil {
			return nil, fmt.Errorf("Trigger %s: %w", key, err)
		}
		b.triggers[t.name] = t
		b.brokers[t.broker] = append(b.brokers[t.broker], t)
	}
	var err error
	if b.durable, err = pool(ctx, o.DatabaseURL, "on"); err != nil {
		return nil, err
	}
	if b.relaxed, err = pool(ctx, o.DatabaseURL, "off"); err != nil {
		return nil, err
	}
	if err := createSchema(ctx, b.durable); err != nil {
		b.Close()
		return nil, fmt.Errorf("broker schema: %w", err)
	}
	b.ctx, b.halt = context.WithCancel(context.WithoutCancel(ctx))
	return b, nil
}

// Start resumes the deliveries that the former process left. Every subscriber must be reachable by now.
func (b *Broker) Start(ctx context.Context) error {
	if err := b.resume(ctx); err != nil {
		return fmt.Errorf("undelivered events: %w", err)
	}
	b.started.Store(true)
	return nil
}

func pool(ctx context.Context, databaseURL, synchronousCommit string) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("broker database: %w", err)
	}
	c.MaxConns = connections
	c.ConnConfig.RuntimeParams["application_name"] = "littoral-broker"
	c.ConnConfig.RuntimeParams["synchronous_commit"] = synchronousCommit
	return pgxpool.NewWithConfig(ctx, c)
}

// maxHops is the longest chain of replies to replies, as in Knative.
const maxHops = 255

// Ingest stores the event for every Trigger of the Broker that matches it; when it returns nil, the event will be
// delivered. The error is NotFound for an unknown Broker, and Unavailable if Postgres cannot be reached.
func (b *Broker) Ingest(ctx context.Context, broker types.NamespacedName, e cloudevents.Event) error {
	if !b.started.Load() { // Start would load its rows a second time
		return problem.New(problem.Unavailable, "the Broker has not started")
	}
	rows, err := b.accept(ctx, b.durable, broker, e)
	if err != nil {
		return store.Classify(err)
	}
	b.enqueue(rows...)
	return nil
}

// accept stores the deliveries of an event without starting them.
func (b *Broker) accept(
	ctx context.Context, q store.Querier, broker types.NamespacedName, e cloudevents.Event,
) ([]*delivery, error) {
	triggers, ok := b.brokers[broker]
	if !ok {
		return nil, problem.New(problem.NotFound, "there is no Broker %s", broker)
	}
	if err := e.Validate(); err != nil {
		return nil, problem.Wrap(problem.Malformed, err, "this is not a CloudEvent: %v", err)
	}
	e = e.Clone()
	hops, err := knbroker.GetTTL(e.Context)
	if err != nil {
		hops = maxHops
	}
	if hops <= 0 {
		b.log.WarnContext(ctx, "event dropped: too many replies to replies", "event_type", e.Type(), "event_id", e.ID())
		return nil, nil
	}
	if err := knbroker.SetTTL(e.Context, hops); err != nil {
		return nil, err
	}
	var rows []*delivery
	for _, t := range triggers {
		if t.wants(ctx, e) {
			rows = append(rows, &delivery{trigger: t, event: e})
		} else {
			t.stats.filtered.Add(1)
		}
	}
	return rows, insertDeliveries(ctx, q, rows)
}

// Publisher returns the publisher that functions use, which calls the Broker without a network in between.
func (b *Broker) Publisher(broker types.NamespacedName) Publisher { return Publisher{b, broker} }

// Publisher implements events.Publisher.
type Publisher struct {
	to   *Broker
	name types.NamespacedName
}

// Publish returns when the Broker has stored the event.
func (p Publisher) Publish(ctx context.Context, e cloudevents.Event) error {
	return p.to.Ingest(ctx, p.name, e)
}

// resume loads all stored deliveries. If their Trigger no longer exists they become dead letters: a cluster would drop
// them, but here a person can still look at them.
func (b *Broker) resume(ctx context.Context) error {
	type stored struct {
		delivery

		name string
		body []byte
	}
	read := func(row pgx.CollectableRow) (s stored, err error) {
		err = row.Scan(&s.id, &s.name, &s.body, &s.attempt, &s.due, &s.deadLetter)
		if err == nil {
			s.event, err = decode(s.body)
		}
		return s, err
	}
	left, err := store.Collect(ctx, b.durable, "read deliveries", read, selectDeliveries)
	if err != nil {
		return err
	}
	for i := range left {
		d := &left[i].delivery
		if d.trigger = b.triggers[left[i].name]; d.trigger == nil {
			d.trigger = &trigger{name: left[i].name}
			if err := b.bury(ctx, d, result{code: noResponse, body: []byte("the Trigger is gone")}); err != nil {
				return err
			}
			continue
		}
		b.enqueue(d)
	}
	if len(left) > 0 {
		b.log.InfoContext(ctx, "undelivered events taken up", "count", len(left))
	}
	return nil
}

// Stop starts no more deliveries and waits until the running ones have ended; if ctx ends first, they are cancelled.
// Everything that was not delivered is stored. Events are still accepted and stored until Close.
func (b *Broker) Stop(ctx context.Context) error {
	b.mu.Lock()
	b.stopping = true
	b.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		b.inFlight.Wait()
		close(idle)
	}()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = fmt.Errorf("deliveries cut off: %w", context.Cause(ctx))
		b.halt()
		select {
		case <-idle:
		case <-time.After(time.Second):
			err = errors.Join(err, errors.New("some do not react"))
		}
	}
	return err
}

// Close stops accepting events. Call Stop first.
func (b *Broker) Close() {
	if b.halt != nil {
		b.halt()
	}
	b.durable.Close()
	b.relaxed.Close()
}
