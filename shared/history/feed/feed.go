// Package feed follows the history for many readers at once: one of them asks Postgres, whoever reads gets what was found.
package feed

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/store"
)

const (
	every = 250 * time.Millisecond // between questions, while anybody reads
	batch = 500                    // entries of one question
	kept  = 2000                   // the newest entries, for readers that are a little behind
)

// Feed is the newest history. It asks only while there are readers, so an instance without any does nothing.
type Feed struct {
	q store.Querier

	mu      sync.Mutex
	readers int
	stop    context.CancelFunc
	recent  []history.Entry // all of them after from
	from    int64
	changed chan struct{} // closed, and replaced, with each change
	failed  error         // of the last question
}

// New returns a feed that asks nothing yet.
func New(q store.Querier) *Feed { return &Feed{q: q, changed: make(chan struct{})} }

// Reader follows a feed. It is not safe for use by several goroutines.
type Reader struct {
	feed  *Feed
	After int64 // the id of the last entry that was read
}

// Open returns a reader of what comes after the id; nil = what comes from now on. The error says that Postgres does not
// answer. Close must be called at its end.
func (f *Feed) Open(ctx context.Context, after *int64) (*Reader, error) {
	last, _, err := history.Before(ctx, f.q, nil, math.MaxInt64, 1)
	if err != nil {
		return nil, err
	}
	r := &Reader{feed: f}
	if len(last) > 0 {
		r.After = last[0].ID
	}
	f.enter(r.After)
	if after != nil && *after < r.After { // a greater one is of a database that has been set back since
		r.After = *after
	}
	return r, nil
}

// Close ends the reader.
func (r *Reader) Close() { r.feed.leave() }

// Follow calls each with every entry, in order, until the context ends, each fails, or Postgres does. With an application
// only its entries are given, and those about none, such as changes of the infrastructure. alive is called when nothing
// has come for a while.
func (r *Reader) Follow(
	ctx context.Context, application *uuid.UUID, quiet time.Duration, each func(history.Entry) error, alive func() error,
) error {
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for {
		entries, wait, err := r.feed.since(ctx, r.After)
		if err != nil {
			return err
		}
		for _, e := range entries {
			r.After = e.ID
			if application != nil && e.ApplicationID != nil && *e.ApplicationID != *application {
				continue
			}
			if err := each(e); err != nil {
				return err
			}
			timer.Reset(quiet)
		}
		if len(entries) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			if err := alive(); err != nil {
				return err
			}
			timer.Reset(quiet)
		case <-wait:
		}
	}
}

// since returns entries after the id: those found already, or older ones from Postgres. If there are none, wait is closed
// when there may be.
func (f *Feed) since(ctx context.Context, after int64) (entries []history.Entry, wait <-chan struct{}, err error) {
	f.mu.Lock()
	recent, from, wait, failed := f.recent, f.from, f.changed, f.failed
	f.mu.Unlock()
	if failed != nil {
		return nil, nil, failed
	}
	if after < from { // it is further behind than what is kept
		entries, err = history.After(ctx, f.q, nil, after, batch)
		return entries, wait, err
	}
	for i, e := range recent {
		if e.ID > after {
			return recent[i:], wait, nil
		}
	}
	return nil, wait, nil
}

// enter counts a reader; the first begins the questions, after what there is now.
func (f *Feed) enter(newest int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers++
	if f.readers > 1 {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop, f.recent, f.from, f.failed = stop, nil, newest, nil
	go f.ask(ctx, newest)
}

func (f *Feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers--; f.readers == 0 {
		f.stop()
	}
}

// ask puts what is new behind what is known, until there is no reader any more, or Postgres fails: then every reader
// ends, and says so to whom it reads for by the end of its stream.
func (f *Feed) ask(ctx context.Context, last int64) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		entries, err := history.After(ctx, f.q, nil, last, batch)
		if ctx.Err() != nil {
			return
		}
		if len(entries) > 0 || err != nil {
			f.mu.Lock()
			if ctx.Err() == nil { // else another reader began anew meanwhile
				f.add(entries, err)
			}
			f.mu.Unlock()
		}
		if err != nil {
			return
		}
		if len(entries) > 0 {
			last = entries[len(entries)-1].ID
		}
		if len(entries) == batch {
			continue // there are more
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// add is called with the lock. Readers keep parts of recent: it is replaced, never changed.
func (f *Feed) add(entries []history.Entry, err error) {
	all := append(f.recent[:len(f.recent):len(f.recent)], entries...)
	if extra := len(all) - kept; extra > 0 {
		f.from = all[extra-1].ID
		all = append([]history.Entry(nil), all[extra:]...)
	}
	f.recent, f.failed = all, err
	close(f.changed)
	f.changed = make(chan struct{})
}
