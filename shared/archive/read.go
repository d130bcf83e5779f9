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
	"github.com/littoral-project/littoral/shared/store"
)

const (
	// Archives that may contain matching entries.
	archivesOf = ` and ($2::uuid is null or applications @> array[$2::uuid])
and (cardinality($3::text[]) = 0 or events is null or events && $3) order by last_entry`
	archivesAfter  = `select key, sha256 from archives where kind = 'history' and last_entry > $1` + archivesOf
	archivesBefore = `select key, sha256 from archives where kind = 'history' and first_entry < $1` + archivesOf + ` desc`
)

// After lists up to limit archived entries with an id above after, oldest first, and at most store.PageBytes;
// application nil means all, and an empty events all of these.
func (a *Archive) After(
	ctx context.Context, application *uuid.UUID, after int64, limit int, events ...string,
) ([]history.Entry, error) {
	p := page{limit: limit, list: []history.Entry{}}
	err := a.each(ctx, func(entries []history.Entry) bool {
		for i := range entries {
			if entries[i].ID > after && matches(&entries[i], application, events) && !p.add(entries[i]) {
				return false
			}
		}
		return true
	}, archivesAfter, after, application, append([]string{}, events...))
	return p.list, err
}

// Before lists the newest archived entries with an id below before, up to limit, oldest first. cut reports whether they
// exceeded store.PageBytes.
func (a *Archive) Before(
	ctx context.Context, application *uuid.UUID, before int64, limit int, events ...string,
) (list []history.Entry, cut bool, err error) {
	p := page{limit: limit, list: []history.Entry{}}
	err = a.each(ctx, func(entries []history.Entry) bool {
		for i := range slices.Backward(entries) {
			if entries[i].ID < before && matches(&entries[i], application, events) && !p.add(entries[i]) {
				return false
			}
		}
		return true
	}, archivesBefore, before, application, append([]string{}, events...))
	slices.Reverse(p.list)
	return p.list, p.cut, err
}

// page is filled like store.Page.
type page struct {
	list        []history.Entry
	limit, size int
	cut         bool
}

// add reports whether there may be room for another entry.
func (p *page) add(e history.Entry) bool {
	p.size += e.Size()
	if p.cut = p.size > store.PageBytes && len(p.list) > 0; p.cut {
		return false
	}
	p.list = append(p.list, e)
	return len(p.list) < p.limit
}

func matches(e *history.Entry, application *uuid.UUID, events []string) bool {
	return (application == nil || (e.ApplicationID != nil && *e.ApplicationID == *application)) &&
		(len(events) == 0 || slices.Contains(events, e.Event))
}

// each calls see with the entries of one object after the other until it returns false.
func (a *Archive) each(ctx context.Context, see func([]history.Entry) bool, sql string, args ...any) error {
	type object struct{ Key, SHA256 string }
	list, err := store.Collect(ctx, a.db, "read the index", pgx.RowToStructByPos[object], sql, args...)
	if err != nil {
		return err
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
