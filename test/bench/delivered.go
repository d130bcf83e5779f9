package main

import (
	"context"
	"fmt"
	"io"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/test/bench/stats"
	"github.com/littoral-project/littoral/triggers"
)

// budgetAwaited is what cycles with awaited consumers must reach of those that end when the Broker has accepted.
const budgetAwaited = 0.90

// awaited compares cycles whose events leave the outbox when the Broker has accepted them with cycles whose events leave
// it when every consumer has taken them. The consumers, which do nothing else, are the same in both.
type awaited struct {
	Consumers int     `json:"consumersOfACycle"`
	Accepted  float64 `json:"cyclesPerSecond"`
	Taken     float64 `json:"awaitedCyclesPerSecond"`
	Ratio     float64 `json:"awaitedRatio"`
}

// delivers is a Broker that lets each consumer take the event before it accepts it.
type delivers struct {
	db        *store.DB
	consumers map[string][]string // by type
}

// Publish implements events.Publisher.
func (d *delivers) Publish(ctx context.Context, e cloudevents.Event) error {
	for _, consumer := range d.consumers[e.Type()] {
		if _, err := d.db.React(ctx, consumer, e, func(context.Context, *store.Tx) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// A cycle announces this, and benchConsumer takes it beside whoever the Triggers name.
const (
	cycleEvent    = events.JobFinished
	benchConsumer = "bench"
)

// runAwaited measures rounds of both, in turn.
func (b *jobBench) runAwaited(ctx context.Context) (awaited, error) {
	table, err := triggers.Table(triggers.Files)
	if err != nil {
		return awaited{}, err
	}
	var list []store.Subscription
	broker := &delivers{consumers: map[string][]string{}}
	for _, row := range table {
		list = append(list, store.Subscriptions(row.Function, []map[string]string{row.Attributes})...)
		broker.consumers[row.Attributes["type"]] = append(broker.consumers[row.Attributes["type"]], row.Function)
	}
	list = append(list, store.Subscription{Consumer: benchConsumer, Type: cycleEvent})
	broker.consumers[cycleEvent] = append(broker.consumers[cycleEvent], benchConsumer)
	b.db.Close()
	c := store.Config{DatabaseURL: b.address, MaxConns: 2 * jobClients, PublishAtOnce: jobClients}
	if b.db, err = store.Open(ctx, c, broker, nil); err != nil {
		return awaited{}, err
	}
	broker.db = b.db
	var accepted, taken stats.Sample
	for range times(jobsUsual) {
		for sample, subscribed := range map[*stats.Sample][]store.Subscription{&accepted: nil, &taken: list} {
			if _, err := b.db.Subscribe(ctx, subscribed); err != nil {
				return awaited{}, err
			}
			rate, _, err := b.ours(ctx)
			if err != nil {
				return awaited{}, err
			}
			*sample = append(*sample, rate)
			if err := nothingLeft(ctx, b.db); err != nil {
				return awaited{}, err
			}
		}
	}
	a := awaited{Consumers: len(broker.consumers[cycleEvent]), Accepted: accepted.P50(), Taken: taken.P50()}
	a.Ratio = a.Taken / a.Accepted
	return a, nil
}

// nothingLeft fails if an event is still in the outbox: a cycle that leaves it there is not one.
func nothingLeft(ctx context.Context, db *store.DB) error {
	waiting, _, err := db.Waiting(ctx)
	if err == nil && waiting > 0 {
		err = fmt.Errorf("%d events are still in the outbox", waiting)
	}
	return err
}

func (a awaited) print(w io.Writer) {
	_, _ = fmt.Fprintf(w, "\nWith %d consumers that take the event of a cycle: %s cycles/s; awaited as the Triggers ask: %s; ratio %s.\n"+
		"Goal: ratio >= %.2f.\n", a.Consumers, say(a.Accepted), say(a.Taken), say(a.Ratio), budgetAwaited)
}
