package broker

import (
	"context"
	"encoding/base64"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/jackc/pgx/v5"
	knbroker "knative.dev/eventing/pkg/broker"
	"knative.dev/eventing/pkg/kncloudevents/attributes"

	"github.com/littoral-project/littoral/shared/events"
)

// delivery is one event for one Trigger's subscriber, or for the dead letter sink if deadLetter is set.
type delivery struct {
	id         int64
	trigger    *trigger
	event      cloudevents.Event
	attempt    int // attempts so far
	due        time.Time
	deadLetter *int64
}

func (d *delivery) destination() string {
	if d.deadLetter != nil {
		return d.trigger.sink
	}
	return d.trigger.subscriber
}

// result is how an attempt ended.
type result struct {
	code   int // noResponse if there was none
	header http.Header
	body   []byte
	reply  *cloudevents.Event
}

func (r result) ok() bool { return r.code >= 200 && r.code < 300 }

// enqueue starts deliveries when they are due, within the concurrency limit of each Trigger.
func (b *Broker) enqueue(rows ...*delivery) {
	for _, d := range rows {
		d.trigger.stats.pending.Add(1)
		if wait := time.Until(d.due); wait > 0 {
			time.AfterFunc(wait, func() { b.ready(d) })
		} else {
			b.ready(d)
		}
	}
}

func (b *Broker) ready(d *delivery) {
	t := d.trigger
	t.mu.Lock()
	t.waiting = append(t.waiting, d)
	t.mu.Unlock()
	b.next(t)
}

// next starts a worker for t unless it already has the maximum.
func (b *Broker) next(t *trigger) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.stopping || t.running >= Parallel || len(t.waiting) == 0 {
		return
	}
	t.running++
	b.inFlight.Add(1)
	go b.work(t)
}

// work makes the deliveries queued for t until the queue is empty.
func (b *Broker) work(t *trigger) {
	defer b.inFlight.Done()
	for {
		b.mu.Lock()
		stopping := b.stopping
		b.mu.Unlock()
		t.mu.Lock()
		if stopping || len(t.waiting) == 0 {
			t.running--
			t.mu.Unlock()
			return
		}
		d := t.waiting[0]
		t.waiting = t.waiting[1:]
		t.mu.Unlock()
		b.storeResult(d, b.attempt(b.ctx, d))
	}
}

// maxAnswer limits the size of an answer, which may contain an event.
const maxAnswer = events.MaxBytes + 1

// attempt sends the event once, in binary mode like Knative's dispatcher.
func (b *Broker) attempt(ctx context.Context, d *delivery) result {
	ctx, cancel := context.WithTimeout(ctx, d.trigger.policy.timeout)
	defer cancel()
	e := d.event.Clone()
	if d.deadLetter == nil {
		_ = knbroker.DeleteTTL(e.Context) // it is only meant for Brokers
	}
	r, err := cehttp.NewHTTPRequestFromEvent(ctx, d.destination(), e)
	if err != nil {
		return result{code: noResponse, body: []byte(err.Error())}
	}
	r.Header.Set("Prefer", "reply")
	if parent := events.TraceParent(e); parent != "" {
		r.Header.Set("Traceparent", parent)
	}
	resp, err := b.options.Client.Do(r)
	if err != nil {
		return result{code: noResponse, body: []byte(err.Error())}
	}
	defer func() { _ = resp.Body.Close() }()
	out := result{code: resp.StatusCode, header: resp.Header}
	if out.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return result{code: noResponse, body: []byte(err.Error())}
	}
	if out.ok() && d.deadLetter == nil {
		if out.reply, err = replyIn(resp, out.body); err != nil {
			// Knative treats an answer that claims to be an event but cannot be parsed as a failed delivery.
			return result{code: noResponse, body: []byte(err.Error())}
		}
	}
	return out
}

// replyIn returns the event in the subscriber's answer, nil for any other answer.
func replyIn(resp *http.Response, body []byte) (*cloudevents.Event, error) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media != cloudevents.ApplicationCloudEventsJSON && resp.Header.Get("Ce-Specversion") == "" {
		return nil, nil // no event is the usual answer
	}
	e, err := events.FromRequest(&http.Request{Header: resp.Header, Body: io.NopCloser(strings.NewReader(string(body)))})
	return &e, err
}

// storeResult updates the row with the result. It retries until it succeeds: the attempt has been made, and while Postgres
// cannot be reached nothing else can be delivered either. Only a stop ends it; the event is then delivered again after
// the next start.
func (b *Broker) storeResult(d *delivery, r result) {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := b.tryStoreResult(d, r)
		if err == nil {
			d.trigger.stats.pending.Add(-1)
			return
		}
		if b.ctx.Err() != nil {
			return
		}
		b.log.Warn("the outcome of a delivery waits for Postgres", "trigger", d.trigger.name, "error", err)
		select {
		case <-time.After(pause):
		case <-b.ctx.Done():
			return
		}
	}
}

func (b *Broker) tryStoreResult(d *delivery, r result) error {
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	defer cancel()
	stats := &d.trigger.stats
	switch {
	case r.ok():
		return b.done(ctx, d, r)
	case repeatable(r.code) && d.attempt < d.trigger.policy.retries && b.ctx.Err() == nil:
		again := *d
		again.attempt++
		again.due = time.Now().Add(d.trigger.policy.wait(d.attempt, r))
		if _, err := b.relaxed.Exec(ctx, postponeDelivery, d.id, again.attempt, again.due); err != nil {
			return err
		}
		stats.retried.Add(1)
		b.log.Warn("delivery failed, another attempt follows", "trigger", d.trigger.name, "event_type", d.event.Type(),
			"event_id", d.event.ID(), "code", r.code, "attempt", again.attempt, "due", again.due)
		b.enqueue(&again)
		return nil
	case b.ctx.Err() != nil:
		return b.ctx.Err() // cancelled, not failed: the row stays as it is
	default:
		return b.bury(ctx, d, r)
	}
}

// done deletes the row and stores the reply, if there is one, in one transaction.
func (b *Broker) done(ctx context.Context, d *delivery, r result) error {
	stats := &d.trigger.stats
	if d.deadLetter != nil {
		return b.closeDeadLetter(ctx, d, "delivered")
	}
	if r.reply == nil {
		if _, err := b.relaxed.Exec(ctx, deleteDelivery, d.id); err != nil {
			return err
		}
		stats.delivered.Add(1)
		return nil
	}
	reply := r.reply.Clone()
	hops, err := knbroker.GetTTL(d.event.Context)
	if err != nil {
		hops = maxHops
	}
	if err := knbroker.SetTTL(reply.Context, hops-1); err != nil {
		return err
	}
	var rows []*delivery
	err = pgx.BeginFunc(ctx, b.durable, func(tx pgx.Tx) (err error) {
		if rows, err = b.accept(ctx, tx, d.trigger.broker, reply); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, deleteDelivery, d.id)
		return err
	})
	if err != nil {
		return err
	}
	stats.delivered.Add(1)
	stats.replies.Add(1)
	b.enqueue(rows...)
	return nil
}

// bury gives up on an event: it becomes a dead letter that people can see. If a sink is set, a delivery to the sink is
// added, with Knative's error extensions.
func (b *Broker) bury(ctx context.Context, d *delivery, r result) error {
	if d.deadLetter != nil { // the sink did not take it either
		b.log.Error("the dead letter sink does not take an event", "trigger", d.trigger.name, "sink", d.trigger.sink,
			"event_id", d.event.ID(), "code", r.code)
		return b.closeDeadLetter(ctx, d, "failed")
	}
	body, err := encode(d.event)
	if err != nil {
		return err
	}
	state := "none"
	if d.trigger.sink != "" {
		state = "pending"
	}
	var toSink []*delivery
	err = pgx.BeginFunc(ctx, b.durable, func(tx pgx.Tx) error {
		var id int64
		err := tx.QueryRow(ctx, insertDeadLetter, d.trigger.name, body, d.attempt+1, d.trigger.subscriber, r.code,
			strings.ToValidUTF8(strings.ReplaceAll(string(r.body[:min(len(r.body), 4096)]), "\x00", ""), "?"),
			d.trigger.sink, state).Scan(&id)
		if err != nil {
			return err
		}
		if state == "pending" {
			toSink = []*delivery{{trigger: d.trigger, event: withError(d, r), deadLetter: &id}}
			if err := insertDeliveries(ctx, tx, toSink); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, deleteDelivery, d.id)
		return err
	})
	if err != nil {
		return err
	}
	d.trigger.stats.deadLettered.Add(1)
	b.log.Error("event given up", "trigger", d.trigger.name, "event_type", d.event.Type(), "event_id", d.event.ID(),
		"destination", d.trigger.subscriber, "code", r.code, "attempts", d.attempt+1)
	b.enqueue(toSink...)
	return nil
}

// closeDeadLetter stores the result of the delivery to the sink.
func (b *Broker) closeDeadLetter(ctx context.Context, d *delivery, state string) error {
	return pgx.BeginFunc(ctx, b.durable, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, updateDeadLetter, *d.deadLetter, state); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, deleteDelivery, d.id)
		return err
	})
}

// withError adds the extensions that Knative's dispatcher adds for a dead letter sink.
func withError(d *delivery, r result) cloudevents.Event {
	e := d.event.Clone()
	data := base64.StdEncoding.EncodeToString(r.body)
	e.SetExtension(attributes.KnativeErrorDestExtensionKey, d.trigger.subscriber)
	e.SetExtension(attributes.KnativeErrorCodeExtensionKey, r.code)
	e.SetExtension(attributes.KnativeErrorDataExtensionKey,
		data[:min(len(data), attributes.KnativeErrorDataExtensionMaxLength)])
	return e
}
