// Package feed follows a numbered list in Postgres for many readers at once: one of them asks Postgres, whoever reads gets
// what was found.
package feed

import (
	"context"
	"sync"
	"time"
)

const (
	every     = 250 * time.Millisecond // between questions, while anybody reads
	batch     = 500                    // items of one question
	kept      = 2000                   // the newest items, for readers that are a little behind
	keptBytes = 16 << 20               // of them
)

// Source is the list. The numbers of its items grow, and an item becomes visible after all those with lower numbers.
type Source[T any] interface {
	// Newest returns the number of the last item, 0 when there is none.
	Newest(ctx context.Context) (int64, error)
	// After returns the first items with a higher number, at most limit; more says that there are others behind them.
	After(ctx context.Context, number int64, limit int) (list []T, more bool, err error)
	Number(item T) int64
	Size(item T) int // roughly, in bytes
}

// Feed is the end of the list. It asks only while there are readers, so an instance without any does nothing.
type Feed[T any] struct {
	source Source[T]

	mu      sync.Mutex
	readers int
	stop    context.CancelFunc
	recent  []T // all of them after from
	from    int64
	changed chan struct{} // closed, and replaced, with each change
	failed  error         // of the last question
}

// New returns a feed that asks nothing yet.
func New[T any](source Source[T]) *Feed[T] {
	return &Feed[T]{source: source, changed: make(chan struct{})}
}

// Reader follows a feed. It is not safe for use by several goroutines.
type Reader[T any] struct {
	feed  *Feed[T]
	After int64 // the number of the last item that was read
}

// Open returns a reader of what comes after the number; nil = what comes from now on. The error says that Postgres does
// not answer. Close must be called at its end.
func (f *Feed[T]) Open(ctx context.Context, after *int64) (*Reader[T], error) {
	newest, err := f.source.Newest(ctx)
	if err != nil {
		return nil, err
	}
	r := &Reader[T]{f, newest}
	f.enter(ctx, newest)
	if after != nil && *after < newest { // a greater one is of a database that has been set back since
		r.After = *after
	}
	return r, nil
}

// Close ends the reader.
func (r *Reader[T]) Close() { r.feed.leave() }

// Follow calls each with every wanted item, in order, until the context ends, each fails, or Postgres does. alive is called
// when nothing has come for a while.
func (r *Reader[T]) Follow(
	ctx context.Context, wanted func(T) bool, quiet time.Duration, each func(T) error, alive func() error,
) error {
	return Watch(ctx, quiet, func() (sent bool, wait <-chan struct{}, err error) {
		items, wait, err := r.feed.since(ctx, r.After)
		if err != nil {
			return false, nil, err
		}
		for _, item := range items {
			r.After = r.feed.source.Number(item)
			if !wanted(item) {
				continue
			}
			if err := each(item); err != nil {
				return sent, nil, err
			}
			sent = true
		}
		if len(items) > 0 {
			return sent, nil, nil
		}
		return sent, wait, nil
	}, alive)
}

// Watch calls look again and again, until the context ends or look or alive fails. look says whether it has sent anything, and
// what is closed when there may be more; nil = there may be more now. alive is called when nothing was sent for a while.
func Watch(
	ctx context.Context, quiet time.Duration, look func() (sent bool, wait <-chan struct{}, err error), alive func() error,
) error {
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for {
		sent, wait, err := look()
		if err != nil {
			return err
		}
		if sent {
			timer.Reset(quiet)
		}
		if wait == nil {
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

// since returns items after the number: those found already, or older ones from Postgres. If there are none, wait is closed
// when there may be.
func (f *Feed[T]) since(ctx context.Context, after int64) (items []T, wait <-chan struct{}, err error) {
	f.mu.Lock()
	recent, from, wait, failed := f.recent, f.from, f.changed, f.failed
	f.mu.Unlock()
	if failed != nil {
		return nil, nil, failed
	}
	if after < from { // it is further behind than what is kept
		items, _, err = f.source.After(ctx, after, batch)
		return items, wait, err
	}
	for i, item := range recent {
		if f.source.Number(item) > after {
			return recent[i:], wait, nil
		}
	}
	return nil, wait, nil
}

// enter counts a reader; the first begins the questions, after what there is now. They outlive its call.
func (f *Feed[T]) enter(ctx context.Context, newest int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers++
	if f.readers > 1 {
		return
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	f.stop, f.recent, f.from, f.failed = stop, nil, newest, nil
	go f.ask(ctx, newest)
}

func (f *Feed[T]) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers--; f.readers == 0 {
		f.stop()
	}
}

// ask puts what is new behind what is known, until there is no reader any more, or Postgres fails: then every reader
// ends, and says so to whom it reads for by the end of its stream.
func (f *Feed[T]) ask(ctx context.Context, last int64) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		items, more, err := f.source.After(ctx, last, batch)
		if ctx.Err() != nil {
			return
		}
		if len(items) > 0 || err != nil {
			f.mu.Lock()
			if ctx.Err() == nil { // else another reader began anew meanwhile
				f.add(items, err)
			}
			f.mu.Unlock()
		}
		if err != nil {
			return
		}
		if len(items) > 0 {
			last = f.source.Number(items[len(items)-1])
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// add is called with the lock. Readers keep parts of recent: it is replaced, never changed.
func (f *Feed[T]) add(items []T, err error) {
	all := append(f.recent[:len(f.recent):len(f.recent)], items...)
	extra, size := len(all), 0
	for extra > 0 && len(all)-extra < kept && size <= keptBytes {
		extra--
		size += f.source.Size(all[extra])
	}
	if extra > 0 {
		f.from = f.source.Number(all[extra-1])
		all = append([]T(nil), all[extra:]...)
	}
	f.recent, f.failed = all, err
	close(f.changed)
	f.changed = make(chan struct{})
}
