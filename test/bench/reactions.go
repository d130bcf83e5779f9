package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/types"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/littoral-project/littoral/infra/runner/broker"
	"github.com/littoral-project/littoral/infra/runner/manifests"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/test/bench/stats"
)

const (
	reactionsUsual = 5     // rounds
	reactionsOf    = 2_000 // events in a round
	reactionsFrom  = 4     // who emit at once
)

// reactionSubjects are how many objects the events of a round are about.
var reactionSubjects = []int{1, 8}

// reactionsResult is how many events a second go from a commit through the outbox and the Broker of the laptop to the commit of their
// reaction.
type reactionsResult struct {
	Rounds   int            `json:"rounds"`
	Events   int            `json:"events"` // of a round
	Subjects []reactionsRow `json:"subjects"`
}

type reactionsRow struct {
	Subjects int     `json:"subjects"`
	Emitted  float64 `json:"emittedPerSecond"` // commits alone, while reactions go on
	Reacted  float64 `json:"reactedPerSecond"`
	Ratio    float64 `json:"ratioToOneSubject"`
}

// reactions is a store whose events are published to a Broker, which delivers them by HTTP to a consumer that changes a row of their
// subject: those about one subject wait for each other, as functions wait that change one application.
type reactions struct {
	db     *store.DB
	broker *broker.Broker

	reacted chan error // of each delivery
}

const reactingTo = events.JobFinished // an event that somebody takes, and that is no nudge

var reactionsBroker = types.NamespacedName{Namespace: "bench", Name: "default"}

func runReactions(ctx context.Context, w *world) (result, error) {
	socket, _, err := w.database(ctx, "reactions")
	if err != nil {
		return nil, err
	}
	b := &reactions{reacted: make(chan error, reactionsOf)}
	base, err := w.serve(ctx, func(string) (http.Handler, error) { return b, nil })
	if err != nil {
		return nil, err
	}
	to, err := apis.ParseURL(base)
	if err != nil {
		return nil, err
	}
	set := &manifests.Set{
		Brokers: map[types.NamespacedName]*eventingv1.Broker{reactionsBroker: {}},
		Triggers: map[types.NamespacedName]*eventingv1.Trigger{
			{Namespace: reactionsBroker.Namespace, Name: benchConsumer}: {
				Spec: eventingv1.TriggerSpec{Broker: reactionsBroker.Name, Subscriber: duckv1.Destination{URI: to}},
			},
		},
	}
	if b.broker, err = broker.Open(ctx, broker.Options{DatabaseURL: socket, Set: set, Client: http.DefaultClient}); err != nil {
		return nil, err
	}
	w.undo = append(w.undo, b.broker.Close)
	if err := b.broker.Start(ctx); err != nil {
		return nil, err
	}
	if b.db, err = store.Open(ctx, store.Config{DatabaseURL: socket, MaxConns: 16}, b.broker.Publisher(reactionsBroker), nil); err != nil {
		return nil, err
	}
	w.undo = append(w.undo, b.db.Close)
	if _, err := b.db.Exec(ctx, `create table reacted (subject text primary key, n int not null)`); err != nil {
		return nil, err
	}
	if _, err := b.db.Subscribe(ctx, []store.Subscription{{Consumer: benchConsumer, Type: reactingTo}}); err != nil {
		return nil, err
	}

	r := reactionsResult{Rounds: times(reactionsUsual), Events: reactionsOf}
	emitted, reacted := make([]stats.Sample, len(reactionSubjects)), make([]stats.Sample, len(reactionSubjects))
	for range r.Rounds {
		for i, subjects := range reactionSubjects {
			committed, taken, err := b.round(ctx, subjects)
			if err != nil {
				return nil, err
			}
			emitted[i] = append(emitted[i], committed)
			reacted[i] = append(reacted[i], taken)
		}
	}
	for i, subjects := range reactionSubjects {
		r.Subjects = append(r.Subjects, reactionsRow{
			Subjects: subjects, Emitted: emitted[i].P50(), Reacted: reacted[i].P50(), Ratio: reacted[i].P50() / reacted[0].P50(),
		})
	}
	return r, nil
}

// round emits the events and waits for all reactions. It returns commits and reactions per second, and fails if an event is left.
func (b *reactions) round(ctx context.Context, subjects int) (emitted, reacted float64, err error) {
	if _, err := b.db.Exec(ctx, `truncate reacted`); err != nil {
		return 0, 0, err
	}
	if _, err := b.db.Exec(ctx, `insert into reacted select i::text, 0 from generate_series(0, $1 - 1) i`, subjects); err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	failed := make(chan error, reactionsFrom)
	var all sync.WaitGroup
	for from := range reactionsFrom {
		all.Go(func() {
			for n := from; n < reactionsOf; n += reactionsFrom {
				err := b.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
					return tx.Emit(ctx, reactingTo, strconv.Itoa(n/reactionsFrom%subjects), events.Job{})
				})
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	committed := time.Since(begin)
	for range reactionsOf {
		select {
		case err = <-b.reacted:
		case err = <-failed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return 0, 0, err
		}
	}
	taken := time.Since(begin)
	var n int
	if err := b.db.QueryRow(ctx, `select sum(n) from reacted`).Scan(&n); err != nil {
		return 0, 0, err
	}
	if n != reactionsOf {
		return 0, 0, fmt.Errorf("%d reactions to %d events", n, reactionsOf)
	}
	if err := b.db.Flush(ctx); err != nil {
		return 0, 0, err
	}
	return reactionsOf / committed.Seconds(), reactionsOf / taken.Seconds(), nothingLeft(ctx, b.db)
}

// ServeHTTP is the consumer.
func (b *reactions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, err := events.FromRequest(r)
	fresh := false
	if err == nil {
		fresh, err = b.react(r.Context(), e)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	} else {
		w.WriteHeader(http.StatusNoContent)
	}
	if fresh || err != nil {
		b.reacted <- err
	}
}

func (b *reactions) react(ctx context.Context, e cloudevents.Event) (fresh bool, err error) {
	return b.db.React(ctx, benchConsumer, e, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `update reacted set n = n + 1 where subject = $1`, e.Subject())
		return err
	})
}

func (r reactionsResult) print(w io.Writer) {
	rows := [][]string{{"subjects", "committed/s", "reacted/s", "ratio"}}
	for _, s := range r.Subjects {
		rows = append(rows, []string{strconv.Itoa(s.Subjects), say(s.Emitted), say(s.Reacted), say(s.Ratio)})
	}
	stats.Table(w, rows)
	_, _ = fmt.Fprintf(w, "\n%d events a round, each a commit of its own by one of %d who emit at once, through the outbox and the Broker of the "+
		"laptop, which stores\nthem on disk, by HTTP to a reaction that changes a row of its subject; medians of %d rounds, in turn.\n",
		r.Events, reactionsFrom, r.Rounds)
}
