package bus

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/littoral-project/littoral/shared/bus/keyexpr"
	"github.com/littoral-project/littoral/shared/feed"
	"github.com/littoral-project/littoral/shared/store"
)

// Feed tells subscribers what is published. One question to Postgres serves all of them.
type Feed struct {
	db   store.Querier
	feed *feed.Feed[Value]
}

// NewFeed returns a feed that asks nothing yet.
func NewFeed(db store.Querier) *Feed { return &Feed{db, feed.New(source{db})} }

// As returns the same feed for a subscriber to whom what is there at the beginning is read from db. What follows is read for all
// subscribers at once, and confined to the selection alone.
func (f *Feed) As(db store.Querier) *Feed { return &Feed{db, f.feed} }

// Subscription is what a subscriber gets.
type Subscription struct {
	reader    *feed.Reader[Value]
	db        store.Querier
	selection keyexpr.Expr
	after     int64

	// Anew says that the subscriber named a number that is too old or from another database: it gets the whole state, and
	// what it knows beyond that is no more.
	Anew bool
}

// Subscribe begins a subscription: of the state and what follows, or with a number of what has changed after it.
func (f *Feed) Subscribe(ctx context.Context, selection keyexpr.Expr, after *int64) (*Subscription, error) {
	reader, err := f.feed.Open(ctx, nil)
	if err != nil {
		return nil, err
	}
	s := &Subscription{reader: reader, db: f.db, selection: selection}
	if after == nil {
		return s, nil
	}
	forgotten, err := Forgotten(ctx, f.db)
	if err != nil {
		reader.Close()
		return nil, err
	}
	if s.Anew = *after < forgotten || *after > reader.After; !s.Anew {
		s.after = *after
	}
	return s, nil
}

// Newest returns the number of the last change, after which a subscriber goes on who wants to know only what is to come.
func (f *Feed) Newest(ctx context.Context) (int64, error) { return source{f.db}.Newest(ctx) }

// Close ends the subscription. It must be called.
func (s *Subscription) Close() { s.reader.Close() }

// Follow calls each for every change, in order, until the context ends, each fails, or Postgres does. Keys without a value
// are part of it unless the state is given. alive is called when nothing has come for a while.
func (s *Subscription) Follow(ctx context.Context, quiet time.Duration, each func(Value) error, alive func() error) error {
	err := Changes(ctx, s.db, s.selection, s.after, s.reader.After, func(v Value) error {
		if v.Deleted && s.after == 0 {
			return nil
		}
		return each(v)
	})
	if err != nil {
		return err
	}
	return s.reader.Follow(ctx, func(v Value) bool { return s.selection.Includes(v.Key) }, quiet, each, alive)
}

type source struct{ q store.Querier }

func (s source) Newest(ctx context.Context) (number int64, err error) {
	if err := s.q.QueryRow(ctx, selectNewest).Scan(&number); err != nil {
		return 0, fmt.Errorf("read the bus: %w", err)
	}
	return number, nil
}

func (s source) After(ctx context.Context, number int64, limit int) (list []Value, more bool, err error) {
	return read(ctx, s.q, selectByNumber, "", limit, number, int64(math.MaxInt64))
}

func (source) Number(v Value) int64 { return v.Number }
func (source) Size(v Value) int     { return v.size() }
