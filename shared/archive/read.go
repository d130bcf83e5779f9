package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/history"
)

const (
	archivesAfter = `select key, sha256 from archives where kind = 'history' and last_entry > $1
and ($2::uuid is null or applications @> array[$2::uuid]) order by last_entry`
	archivesNewest = `select key, sha256 from archives where kind = 'history'
and ($1::uuid is null or applications @> array[$1::uuid]) order by last_entry desc`
)

// After lists up to limit archived entries with an id above after, oldest first; application nil means all, and no
// events all of these.
func (a *Archive) After(
	ctx context.Context, application *uuid.UUID, after int64, limit int, events ...string,
) ([]history.Entry, error) {
	found := []history.Entry{}
	err := a.each(ctx, func(entries []history.Entry) bool {
		for i := range entries {
			if len(found) < limit && entries[i].ID > after && matches(&entries[i], application, events) {
				found = append(found, entries[i])
			}
		}
		return len(found) < limit
	}, archivesAfter, after, application)
	return found, err
}

// Tail lists the newest limit archived entries, oldest first.
func (a *Archive) Tail(
	ctx context.Context, application *uuid.UUID, limit int, events ...string,
) ([]history.Entry, error) {
	found := []history.Entry{}
	err := a.each(ctx, func(entries []history.Entry) bool {
		for i := len(entries) - 1; i >= 0 && len(found) < limit; i-- {
			if matches(&entries[i], application, events) {
				found = append(found, entries[i])
			}
		}
		return len(found) < limit
	}, archivesNewest, application)
	slices.Reverse(found)
	return found, err
}

func matches(e *history.Entry, application *uuid.UUID, events []string) bool {
	return (application == nil || (e.ApplicationID != nil && *e.ApplicationID == *application)) &&
		(len(events) == 0 || slices.Contains(events, e.Event))
}

// each hands the entries of one object after the other to see, until it wants no more.
func (a *Archive) each(ctx context.Context, see func([]history.Entry) bool, sql string, args ...any) error {
	type object struct{ Key, SHA256 string }
	rows, err := a.db.Query(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("read the index: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[object])
	if err != nil {
		return fmt.Errorf("read the index: %w", err)
	}
	for _, o := range list {
		lines, err := a.lines(ctx, o.Key, o.SHA256)
		if err != nil {
			return err
		}
		var entries []history.Entry
		for line := range bytes.Lines(lines) {
			var e history.Entry
			if err := json.Unmarshal(line, &e); err != nil {
				return fmt.Errorf("read the archive: %s: %w", o.Key, err)
			}
			entries = append(entries, e)
		}
		if !see(entries) {
			return nil
		}
	}
	return nil
}
