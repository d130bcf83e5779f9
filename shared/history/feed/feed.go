// Package feed follows the history for many readers at once.
package feed

import (
	"context"
	"math"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/feed"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/store"
)

// New returns a feed that asks nothing yet.
func New(q store.Querier) *feed.Feed[history.Entry] { return feed.New(source{q}) }

// Wanted selects the entries about one application, and those about none, such as changes of the infrastructure; nil = all.
func Wanted(application *uuid.UUID) func(history.Entry) bool {
	return func(e history.Entry) bool {
		return application == nil || e.ApplicationID == nil || *e.ApplicationID == *application
	}
}

type source struct{ q store.Querier }

// Newest returns the id of the last entry.
func (s source) Newest(ctx context.Context) (int64, error) {
	last, _, err := history.Before(ctx, s.q, nil, math.MaxInt64, 1)
	if err != nil || len(last) == 0 {
		return 0, err
	}
	return last[0].ID, nil
}

// After returns entries, oldest first.
func (s source) After(ctx context.Context, id int64, limit int) (list []history.Entry, more bool, err error) {
	list, err = history.After(ctx, s.q, nil, id, limit)
	return list, len(list) == limit, err
}

// Number is the id of the entry.
func (source) Number(e history.Entry) int64 { return e.ID }

// Size is about that of the entry.
func (source) Size(e history.Entry) int { return e.Size() }
