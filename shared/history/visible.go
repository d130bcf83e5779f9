package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/littoral-project/littoral/shared/store"
)

// Ids are assigned on insert and become visible on commit, so a lower id may appear after a higher one was read. A
// reader that continues after the last id it saw would miss it. So a list ends at an id below which nothing can appear
// any more: each writer that may hold a lower one holds a lock on the table, from before it takes the id until its row
// is visible.
//
// The newest id and the present writers, read once, tell which to wait for. Writers take milliseconds, since rows of
// history are sent with the commit.
const selectWriters = `select coalesce(max(id), 0), array(
  select virtualtransaction from pg_locks where locktype = 'relation' and relation = 'history'::regclass
  and database = (select oid from pg_database where datname = current_database())
  and mode = 'RowExclusiveLock' and pid is distinct from pg_backend_pid()
) from history`

const (
	patience = time.Second // with a writer that does not end
	pause    = 2 * time.Millisecond
)

// visibleUpTo returns the newest id of which all rows up to it can be seen now. ok is false when a writer kept us waiting.
func visibleUpTo(ctx context.Context, q store.Querier) (upTo int64, ok bool, err error) {
	upTo, waitFor, err := writers(ctx, q)
	for deadline := time.Now().Add(patience); err == nil && len(waitFor) > 0; {
		if time.Now().After(deadline) {
			return 0, false, nil
		}
		select {
		case <-ctx.Done():
			return 0, false, ctx.Err()
		case <-time.After(pause):
		}
		var still []string
		_, still, err = writers(ctx, q)
		waitFor = slices.DeleteFunc(waitFor, func(w string) bool { return !slices.Contains(still, w) })
	}
	return upTo, err == nil, err
}

func writers(ctx context.Context, q store.Querier) (newest int64, transactions []string, err error) {
	if err := q.QueryRow(ctx, selectWriters).Scan(&newest, &transactions); err != nil {
		return 0, nil, fmt.Errorf("read history: %w", err)
	}
	return newest, transactions, nil
}
