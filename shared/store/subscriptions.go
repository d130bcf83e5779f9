package store

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
)

// Subscription says that a consumer takes events of a type, and of these only those with the attributes. Whoever
// delivers events stores what it knows of its Triggers (Subscribe); shared/docs/delivery.md says what follows.
type Subscription struct {
	Consumer   string
	Type       string
	Attributes map[string]string // besides the type
}

// Subscriptions are those of one consumer to kinds of events, each given by its attributes, "type" among them.
func Subscriptions(consumer string, kinds []map[string]string) []Subscription {
	list := make([]Subscription, 0, len(kinds))
	for _, kind := range kinds {
		attributes := maps.Clone(kind)
		delete(attributes, "type")
		list = append(list, Subscription{Consumer: consumer, Type: kind["type"], Attributes: attributes})
	}
	return list
}

// unknown stands for subscriptions that nobody has looked at yet: every event may have consumers, so all stay in the
// outbox.
var unknown = Subscription{}

const (
	// subscribed are the subscriptions s to an event o of the outbox.
	subscribed = `from subscriptions s where s.type in (o.event ->> 'type', '')
and (s.attributes = '{}' or o.event::jsonb @> s.attributes)`

	// lacks: the consumer of s has not taken the event o, nor has the Broker given up on it there. It could not always
	// say on whom it gave up. A letter that was replayed is on its way again.
	lacks = `not exists (select from inbox i where i.consumer = s.consumer and i.source = o.event ->> 'source' and i.id = o.id::text)
and not exists (select from dead_letters d where d.event_id = o.id::text and d.source = o.event ->> 'source'
  and d.consumer in (s.consumer, 'unknown') and d.replayed_at is null)`

	known   = `exists (select ` + subscribed + `)`                   // somebody takes the event o
	awaited = `exists (select ` + subscribed + ` and ` + lacks + `)` // somebody takes it and has not

	// takenOutbox removes an event that a consumer has taken, unless another one is still to take it. It looks for others
	// only when the publisher has noted that somebody lacked the event when the Broker had accepted it: until then the
	// publisher is still to look itself, and this is a look at one row. A consumer that takes the event while the publisher
	// makes that note, and two that take it at the same moment, do not see each other; then it stays for Confirm.
	takenOutbox = `delete from outbox o where o.id = $1 and o.accepted > 0
and not exists (select ` + subscribed + ` and s.consumer <> $2 and ` + lacks + `)`

	// What is lost of these marks is sent again and does no harm, so nobody waits for the disk.
	markInbox = `with seen as (insert into inbox (consumer, source, id)
select $2::text, $3::text, $1::uuid::text where set_config('synchronous_commit', 'off', true) = 'off' on conflict do nothing)
` + takenOutbox

	confirmOutbox = `delete from outbox where id in (
select o.id from outbox o where ` + known + ` and not ` + awaited + ` for update of o skip locked)`

	readSubscriptions  = `select consumer, type, attributes from subscriptions`
	clearSubscriptions = `delete from subscriptions`
	insertSubscription = `insert into subscriptions (consumer, type, attributes) values ($1, $2, $3) on conflict do nothing`
	expectSubscription = `insert into subscriptions (consumer, type) select $1::text, $2::text where not exists (select from subscriptions)
on conflict do nothing`
)

// Subscribe makes these the subscriptions, and reports whether they were others before.
func (db *DB) Subscribe(ctx context.Context, list []Subscription) (changed bool, err error) {
	err = db.Tx(ctx, func(ctx context.Context, tx *Tx) error {
		changed = false
		same, err := tx.subscribedTo(ctx, list)
		if err != nil || same {
			return err
		}
		changed = true
		tx.Append(clearSubscriptions)
		for _, s := range list {
			tx.Append(insertSubscription, s.Consumer, s.Type, s.given())
		}
		return nil
	})
	return changed, err
}

// ExpectSubscriptions makes every event stay in the outbox until somebody calls Subscribe, if nobody has yet: a new
// deployment knows its consumers a moment after it makes its first event.
func (db *DB) ExpectSubscriptions(ctx context.Context) error {
	if _, err := db.Exec(ctx, expectSubscription, unknown.Consumer, unknown.Type); err != nil {
		return fmt.Errorf("expect subscriptions: %w", err)
	}
	return nil
}

// subscribedTo reports whether the subscriptions are those of the list.
func (tx *Tx) subscribedTo(ctx context.Context, list []Subscription) (bool, error) {
	rows, err := tx.Query(ctx, readSubscriptions)
	if err != nil {
		return false, fmt.Errorf("read subscriptions: %w", err)
	}
	defer rows.Close()
	stored := map[string]bool{}
	for rows.Next() {
		var s Subscription
		if err := rows.Scan(&s.Consumer, &s.Type, &s.Attributes); err != nil {
			return false, fmt.Errorf("read subscriptions: %w", err)
		}
		stored[fmt.Sprint(s.Consumer, s.Type, s.Attributes)] = true
	}
	wanted := map[string]bool{}
	for _, s := range list {
		key := fmt.Sprint(s.Consumer, s.Type, s.given())
		if wanted[key] = true; !stored[key] {
			return false, rows.Err()
		}
	}
	return len(stored) == len(wanted), rows.Err()
}

// given are the attributes as they are stored: {} for none.
func (s Subscription) given() map[string]string {
	if s.Attributes == nil {
		return map[string]string{}
	}
	return s.Attributes
}

// Confirm removes the events from the outbox that all their consumers have taken, and returns how many. Most have left
// before: with the transaction of the last consumer, or when the Broker had accepted them.
func (db *DB) Confirm(ctx context.Context) (int64, error) {
	tag, err := db.Exec(ctx, confirmOutbox)
	if err != nil {
		return 0, fmt.Errorf("confirm events: %w", err)
	}
	return tag.RowsAffected(), nil
}

// Taken records that a consumer without a transaction of its own for the event has done what there was to do about it.
// If that fails, the event is delivered once more.
func (db *DB) Taken(ctx context.Context, consumer string, e cloudevents.Event) {
	id, err := uuid.Parse(e.ID())
	if err != nil {
		return // no event of the outbox
	}
	ctx, cancel := context.WithTimeout(ctx, takenWithin)
	defer cancel()
	if _, err := db.Exec(ctx, markInbox, id, consumer, e.Source()); err != nil {
		slog.WarnContext(ctx, "an event that was taken will be sent again", "event_id", e.ID(), "error", err.Error())
	}
}

// takenWithin bounds the time in which an event is marked, while its sender waits for the answer.
const takenWithin = 5 * time.Second
