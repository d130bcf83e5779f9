package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

const (
	// A letter that is stored and was not replayed was delivered twice: nothing changes, and no row is returned.
	keep = `insert into dead_letters (id, consumer, source, event_id, type, event, code, answer)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (event_id, consumer, source) do update
set code = excluded.code, answer = excluded.answer, at = now(), deaths = dead_letters.deaths + 1, replayed_at = null
where dead_letters.replayed_at is not null
returning deaths`

	columns = `id, consumer, event_id, type, source, code, answer, deaths, at, replayed_at, event`
	list    = `select ` + columns + ` from dead_letters
where ($1 or replayed_at is null) and (at, id) > ($2, $3) order by at, id limit $4`
	ofEvent  = `select ` + columns + ` from dead_letters where event_id = $1 order by consumer, source for update`
	replayed = `update dead_letters set replayed_at = now() where event_id = $1 and replayed_at is null`

	waiting = `select count(*) from dead_letters where replayed_at is null`

	forget = `delete from dead_letters where replayed_at < now() - $1::interval`
)

// Record stores an event from the dead letter sink. It adds one history entry for each time the consumer failed, however
// often the Broker delivers the event here.
func Record(ctx context.Context, db *store.DB, e cloudevents.Event) error {
	l, err := read(e)
	if err != nil {
		return problem.Wrap(problem.Invalid, err, "the event cannot be kept: %v", err)
	}
	return db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		err := tx.QueryRow(ctx, keep, l.ID, l.Consumer, l.Source, l.EventID, l.Type, []byte(l.Event), l.Code, l.Answer).
			Scan(&l.Deaths)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("keep dead letter: %w", err)
		}
		return record(
			ctx,
			tx,
			recorded.EventDead,
			e,
			fmt.Sprintf("%s gave up %s (%d): %s", l.Consumer, short(l.Type), l.Code, l.detail()),
		)
	})
}

// Forged adds a history entry about an event that is not ours. The event is not stored, since a replay would sign it.
// The entry does not refer to the application in the event, which may be made up.
func Forged(ctx context.Context, db *store.DB, e cloudevents.Event) error {
	l, err := read(e)
	if err != nil {
		return problem.Wrap(problem.Invalid, err, "the event cannot be read: %v", err)
	}
	typ, source := events.Brief(l.Type), events.Brief(l.Source)
	data, err := json.Marshal(map[string]string{"eventId": events.Brief(l.EventID), "type": typ, "source": source})
	if err != nil {
		return err
	}
	return db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		return history.Record(ctx, tx, history.Entry{
			Event: recorded.EventForged, Data: data,
			Message: fmt.Sprintf("%s refused %s, which claims to come from %s but is not signed by us",
				events.Brief(l.Consumer), short(typ), source),
		})
	})
}

// List returns a page of the letters, oldest first; replayed ones are included only if all is set. cut reports whether
// the page is shorter than requested because the letters are large.
func List(
	ctx context.Context,
	q store.Querier,
	all bool,
	after time.Time,
	afterID uuid.UUID,
	limit int,
) (letters []Letter, cut bool, err error) {
	size := func(l Letter) int { return len(l.Event) + len(l.Answer) }
	return store.Page(ctx, q, "read dead letters", pgx.RowToStructByName[Letter], size, list, all, after, afterID, limit)
}

// Replay publishes the event again and returns its letters. The error is NotFound if the event is no dead letter, and
// Conflict if it was replayed and has not failed since.
func Replay(ctx context.Context, tx *store.Tx, eventID uuid.UUID) ([]Letter, error) {
	letters, err := lettersOf(ctx, tx, eventID)
	if err != nil {
		return nil, err
	}
	if len(letters) == 0 {
		return nil, problem.New(problem.NotFound, "event %s is no dead letter", eventID)
	}
	var open []string
	for i := range letters {
		if letters[i].ReplayedAt == nil {
			open = append(open, letters[i].Consumer)
		}
	}
	if len(open) == 0 {
		return nil, problem.New(problem.Conflict, "event %s was replayed at %s and has not failed since", eventID,
			letters[0].ReplayedAt.UTC().Format(time.RFC3339))
	}
	e := cloudevents.New()
	if err := json.Unmarshal(letters[0].Event, &e); err != nil {
		return nil, fmt.Errorf("dead letter %s: %w", letters[0].ID, err)
	}
	if err := tx.Replay(ctx, e); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, replayed, eventID.String()); err != nil {
		return nil, fmt.Errorf("mark replayed: %w", err)
	}
	message := fmt.Sprintf("%s goes to %s again", short(e.Type()), strings.Join(open, ", "))
	if err := record(ctx, tx, recorded.EventReplayed, e, message); err != nil {
		return nil, err
	}
	return lettersOf(ctx, tx, eventID)
}

// Waiting returns how many letters nobody has replayed.
func Waiting(ctx context.Context, q store.Querier) (letters int64, err error) {
	if err := q.QueryRow(ctx, waiting).Scan(&letters); err != nil {
		return 0, fmt.Errorf("count dead letters: %w", err)
	}
	return letters, nil
}

// Forget deletes the letters that were replayed longer than age ago and have not failed since, and returns their
// number. Letters that nobody has replayed are kept.
func Forget(ctx context.Context, q store.Querier, age time.Duration) (forgotten int64, err error) {
	tag, err := q.Exec(ctx, forget, age)
	if err != nil {
		return 0, fmt.Errorf("forget dead letters: %w", err)
	}
	return tag.RowsAffected(), nil
}

func record(ctx context.Context, tx *store.Tx, event string, e cloudevents.Event, message string) error {
	application, component := about(e)
	data, err := json.Marshal(map[string]string{"eventId": e.ID(), "type": e.Type()})
	if err != nil {
		return err
	}
	return history.Record(ctx, tx, history.Entry{
		ApplicationID: application, Component: component, Event: event, Message: message, Data: data,
	})
}

// short removes the common parts of our event types.
func short(typ string) string {
	return strings.TrimSuffix(strings.TrimPrefix(typ, "dev.littoral."), ".v1")
}

func lettersOf(ctx context.Context, tx *store.Tx, eventID uuid.UUID) ([]Letter, error) {
	return store.Collect(ctx, tx, "read dead letters", pgx.RowToStructByName[Letter], ofEvent, eventID.String())
}
