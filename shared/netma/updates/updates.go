// Package updates tells what changes of ALTO's resources, as it changes (RFC 8895). What a stream has is kept in Postgres, since the
// call that changes it may come to another function than the one that has it open; one question to Postgres serves all streams of an
// instance.
package updates

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/alto"
	"github.com/littoral-project/littoral/shared/netma/exposure"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// most bounds the substreams of a stream.
const most = 50

// Path is where streams are controlled, each below its id.
const Path = "/alto/updates/"

const (
	insert = `insert into alto_streams (id, owner, substreams, ends_at) values ($1, $2, $3, $4)`

	// Those of instances that were killed end by their time.
	forget = `delete from alto_streams where ends_at < now() - interval '1 minute'`

	remove = `delete from alto_streams where id = $1`

	selectOne = `select substreams from alto_streams where id = $1 and owner = $2 and ends_at > now() for update`

	change = `update alto_streams set substreams = $2, revision = revision + 1 where id = $1`

	selectMany = `select id, revision, substreams from alto_streams where id = any($1)`
)

// row is a stream as it is stored.
type row struct {
	ID         uuid.UUID        `db:"id"`
	Revision   int              `db:"revision"`
	Substreams []alto.Substream `db:"substreams"`
}

// ParseOpening reads the request for a stream.
func ParseOpening(body []byte) (alto.Updates, *alto.Error) { return parse(body, false) }

// ParseControl reads a request to change one.
func ParseControl(body []byte) (alto.Updates, *alto.Error) { return parse(body, true) }

func parse(body []byte, control bool) (alto.Updates, *alto.Error) {
	u, fault := alto.ParseUpdates(body, control)
	if fault != nil {
		return u, fault
	}
	if len(u.Add) > most {
		return u, alto.BadValue("add", fmt.Sprintf("%d resources, at most %d are possible", len(u.Add), most))
	}
	for _, s := range u.Add {
		if _, fault := exposure.ResourceOf(s); fault != nil {
			return u, fault
		}
	}
	return u, nil
}

// Control changes what a stream has. The error is NotFound if the caller has no such stream open, or an *alto.Error.
func Control(ctx context.Context, tx *store.Tx, id uuid.UUID, owner string, u alto.Updates) error {
	has, err := store.One(ctx, tx, "read the stream", pgx.RowTo[[]alto.Substream], selectOne, id, owner)
	if errors.Is(err, pgx.ErrNoRows) {
		return problem.New(problem.NotFound, "you have no stream %s open", id)
	}
	if err != nil {
		return err
	}
	for _, gone := range u.Remove {
		if !slices.ContainsFunc(has, func(s alto.Substream) bool { return s.ID == gone }) {
			return alto.BadValue("remove", gone)
		}
	}
	has = slices.DeleteFunc(has, func(s alto.Substream) bool { return u.All || slices.Contains(u.Remove, s.ID) })
	for _, s := range u.Add {
		if slices.ContainsFunc(has, func(o alto.Substream) bool { return o.ID == s.ID }) {
			return alto.BadValue("add", s.ID)
		}
		has = append(has, s)
	}
	if len(has) > most {
		return alto.BadValue("add", fmt.Sprintf("%d resources, at most %d are possible", len(has), most))
	}
	slices.SortFunc(has, func(a, b alto.Substream) int { return strings.Compare(a.ID, b.ID) })
	_, err = tx.Exec(ctx, change, id, has)
	return store.Classify(err)
}

// Opening is who opens a stream, and for what.
type Opening struct {
	Owner      string
	Caller     netip.Addr // for costs from where the caller is
	Substreams []alto.Substream
	Until      time.Time
	Last       string // the id of the last event that the caller has
}
