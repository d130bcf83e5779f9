package logs

import (
	"context"
	"maps"
	"time"
)

// Late is how much later than others a line may arrive and still reach those who follow. Sites are ahead of each other or
// behind, and collectors send in batches.
const Late = 15 * time.Second

// Follower reads the lines of an application as they come. It is not safe for use by several goroutines.
type Follower struct {
	store Store
	query Query
	now   func() time.Time
	seen  map[Entry]bool // those of the last moments, by which a line is not told twice
}

// Follow returns a follower of what the query selects from its time on. Entries that the caller has seen are left out.
func Follow(s Store, q Query, now func() time.Time, seen []Entry) *Follower {
	f := &Follower{store: s, query: q, now: now, seen: map[Entry]bool{}}
	for _, e := range seen {
		f.seen[e] = true
	}
	f.query.To, f.query.Newest, f.query.Limit = time.Time{}, false, MaxLines
	return f
}

// Next returns the lines that have come since the last call, oldest first.
func (f *Follower) Next(ctx context.Context) ([]Entry, error) {
	begin := f.now().Add(-Late)
	var fresh []Entry
	for q := f.query; ; {
		page, err := f.store.Read(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if !f.seen[e] {
				f.seen[e] = true
				fresh = append(fresh, e)
			}
		}
		if len(page) < q.Limit {
			break
		}
		// The next page begins at the instant of the last line, of which it may have cut off some.
		last := page[len(page)-1].At
		if !last.After(q.From) {
			last = q.From.Add(time.Nanosecond)
		}
		q.From = last
	}
	if begin.After(f.query.From) {
		f.query.From = begin
		maps.DeleteFunc(f.seen, func(e Entry, _ bool) bool { return e.At.Before(begin) })
	}
	Sort(fresh)
	return fresh, nil
}
