package archive_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/archive"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/objects"
	"github.com/littoral-project/littoral/shared/objects/folder"
	"github.com/littoral-project/littoral/shared/objects/s3"
	"github.com/littoral-project/littoral/shared/objects/s3/s3test"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const (
	day       = 24 * time.Hour
	retention = 30 * day
	keep      = 250
)

func exec(t *testing.T, db *store.DB, sql string, args ...any) {
	t.Helper()
	_, err := db.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// record adds n entries, the first with that age and each next one a second younger, every other one about app.
func record(t *testing.T, db *store.DB, n int, age time.Duration, app uuid.UUID) {
	t.Helper()
	exec(t, db, `insert into history (at, application_id, event, message, cause, trace_id, data)
select $1::timestamptz + make_interval(secs => i), case when i % 2 = 0 then $2::uuid end, 'job.' || (i % 3), 'text ' || i,
	'caller x', 'abc', case when i % 5 = 0 then jsonb_build_object('n', i) end
from generate_series(1, $3) i`, time.Now().Add(-age), app, n)
}

func live(t *testing.T, db *store.DB) []history.Entry {
	t.Helper()
	list, _, err := history.Before(t.Context(), db, nil, math.MaxInt64, 100_000)
	require.NoError(t, err)
	return list
}

func archived(t *testing.T, a *archive.Archive) []history.Entry {
	t.Helper()
	list, cut, err := a.Before(t.Context(), nil, math.MaxInt64, 100_000)
	require.NoError(t, err)
	require.False(t, cut)
	return list
}

// moveAll runs until nothing is left to move.
func moveAll(t *testing.T, a *archive.Archive, kind archive.Kind) int {
	t.Helper()
	sum := 0
	for {
		n, err := a.Move(t.Context(), kind, time.Now().Add(-retention), keep)
		require.NoError(t, err)
		if n == 0 {
			return sum
		}
		sum += n
	}
}

// text makes entries comparable: equal times and equal raw JSON may differ in form.
func text(t *testing.T, entries []history.Entry) []string {
	t.Helper()
	list := make([]string, len(entries))
	for i := range entries {
		e := entries[i]
		e.At = e.At.UTC()
		line, err := json.Marshal(e)
		require.NoError(t, err)
		list[i] = string(line)
	}
	return list
}

func TestOldHistoryMovesAndIsReadBack(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) objects.Store{
		"a folder": func(t *testing.T) objects.Store { t.Helper(); return folder.New(t.TempDir()) },
		"a bucket": func(t *testing.T) objects.Store {
			t.Helper()
			return s3.New(s3test.Start(t).Bucket(t), http.DefaultClient)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			moveAndReadBack(t, open(t))
		})
	}
}

func moveAndReadBack(t *testing.T, o objects.Store) {
	t.Helper()
	db := storetest.New(t)
	app, other := uuid.New(), uuid.New()
	record(t, db, 6000, 60*day, app)
	record(t, db, 10, 40*day, other)
	record(t, db, 10, time.Hour, app)
	before := live(t, db)
	a := archive.New(db, o)
	require.Empty(t, archived(t, a))

	require.Equal(t, 6010, moveAll(t, a, archive.History))
	require.Zero(t, moveAll(t, a, archive.History), "once is enough")
	require.Equal(t, text(t, before[6010:]), text(t, live(t, db)))
	require.Equal(t, text(t, before[:6010]), text(t, archived(t, a)), "line by line, in order")

	// The listing of entries that are not archived does the same.
	var paged []history.Entry
	for after := int64(0); ; {
		page, err := a.After(t.Context(), &app, after, 700, "job.0", "job.2")
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		require.LessOrEqual(t, len(page), 700)
		paged, after = append(paged, page...), page[len(page)-1].ID
	}
	want := slices.DeleteFunc(slices.Clone(before[:6010]), func(e history.Entry) bool {
		return e.ApplicationID == nil || *e.ApplicationID != app || e.Event == "job.1"
	})
	require.Equal(t, text(t, want), text(t, paged))
	end := int64(math.MaxInt64)
	for last := len(want); last > len(want)-15; last -= 5 {
		tail, _, err := a.Before(t.Context(), &app, end, 5, "job.0", "job.2")
		require.NoError(t, err)
		require.Equal(t, text(t, want[last-5:last]), text(t, tail))
		end = tail[0].ID
	}
	none, err := a.After(t.Context(), nil, before[6009].ID, 10)
	require.NoError(t, err)
	require.Empty(t, none)
}

// dying is a store whose process is killed at the n-th call: before it has an effect, or right after.
type dying struct {
	objects.Store

	left  int
	after bool
}

var errKilled = errors.New("killed")

func (d *dying) die(work func() error) error {
	d.left--
	if d.left == 0 && !d.after {
		return errKilled
	}
	if err := work(); err != nil {
		return err
	}
	if d.left == 0 {
		return errKilled
	}
	return nil
}

func (d *dying) Put(ctx context.Context, key string, body []byte) error {
	return d.die(func() error { return d.Store.Put(ctx, key, body) })
}

func (d *dying) Get(ctx context.Context, key string) (body []byte, err error) {
	err = d.die(func() error {
		body, err = d.Store.Get(ctx, key)
		return err
	})
	return body, err
}

// tracer kills the connection's work at the n-th statement, before Postgres sees it.
type tracer struct {
	left   int
	cancel context.CancelFunc
}

func (k *tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	if k.left--; k.left == 0 {
		k.cancel()
	}
	return ctx
}

func (*tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestACutOffRunLosesAndDoublesNothing: a run is interrupted at every call of the object store and every statement.
func TestACutOffRunLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	scene := func(t *testing.T) (db *store.DB, o objects.Store, check func()) {
		t.Helper()
		db, o = storetest.New(t), folder.New(t.TempDir())
		record(t, db, 20, 60*day, uuid.New())
		record(t, db, 5, time.Hour, uuid.New())
		before := text(t, live(t, db))
		return db, o, func() {
			t.Helper()
			require.Equal(t, before, text(t, append(archived(t, archive.New(db, o)), live(t, db)...)))
		}
	}
	finish := func(t *testing.T, db *store.DB, o objects.Store, check func()) {
		t.Helper()
		check()
		record(t, db, 1, 50*day, uuid.New()) // a later run may find more to move
		exec(t, db, `delete from history where id = (select max(id) from history)`)
		moveAll(t, archive.New(db, o), archive.History)
		check()
		require.Len(t, live(t, db), 5)
	}
	for _, after := range []bool{false, true} {
		for n := 1; n <= 3; n++ { // the object, its index, the comparison
			t.Run(fmt.Sprintf("call %d of the store, done %v", n, after), func(t *testing.T) {
				t.Parallel()
				db, o, check := scene(t)
				_, err := archive.New(db, &dying{Store: o, left: n, after: after}).
					Move(t.Context(), archive.History, time.Now().Add(-retention), keep)
				require.ErrorIs(t, err, errKilled)
				finish(t, db, o, check)
			})
		}
	}
	for n := 1; ; n++ {
		cut := false
		t.Run(fmt.Sprintf("statement %d", n), func(t *testing.T) {
			db, o, check := scene(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			k := &tracer{left: n, cancel: cancel}
			settings := store.Config{DatabaseURL: db.Config().ConnString()}
			traced, err := store.Open(t.Context(), settings, storetest.RecorderOf(db), k)
			require.NoError(t, err)
			defer traced.Close()
			_, err = archive.New(traced, o).Move(ctx, archive.History, time.Now().Add(-retention), keep)
			cut = k.left <= 0
			if cut {
				require.Error(t, err)
			}
			finish(t, db, o, check)
		})
		if !cut {
			require.Greater(t, n, 3, "the run has that many statements")
			return
		}
	}
}

// liar returns something else than was stored.
type liar struct{ objects.Store }

func (l liar) Get(ctx context.Context, key string) ([]byte, error) {
	body, err := l.Store.Get(ctx, key)
	return append(body, 0), err
}

func TestWhatDidNotArriveIsNotDeleted(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	record(t, db, 20, 60*day, uuid.New())
	o := folder.New(t.TempDir())
	_, err := archive.New(db, liar{o}).Move(t.Context(), archive.History, time.Now().Add(-retention), keep)
	require.ErrorContains(t, err, "not what was stored")
	require.Len(t, live(t, db), 20)

	require.Equal(t, 20, moveAll(t, archive.New(db, o), archive.History))
	_, _, err = archive.New(db, liar{o}).Before(t.Context(), nil, math.MaxInt64, 10)
	require.ErrorContains(t, err, "not what was stored", "nor is it believed later")
}

// during is a store that calls a function while an object is stored.
type during struct {
	objects.Store

	happens func()
}

func (d during) Put(ctx context.Context, key string, body []byte) error {
	d.happens()
	return d.Store.Put(ctx, key, body)
}

// TestWhatIsGoneMeanwhileIsNotArchived: the run is rolled back, since another one may have archived the row.
func TestWhatIsGoneMeanwhileIsNotArchived(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	record(t, db, 20, 60*day, uuid.New())
	gone := during{folder.New(t.TempDir()), func() { exec(t, db, `delete from history where id = 5`) }}
	_, err := archive.New(db, gone).Move(t.Context(), archive.History, time.Now().Add(-retention), keep)
	require.ErrorContains(t, err, "19 of 20 lines were there")
	require.Len(t, live(t, db), 19)
	require.Empty(t, archived(t, archive.New(db, gone)))
}

// TestHistoryMovesUpToTheFirstEntryThatStays: a clock was set back. Reading page by page, by number, must continue from
// the archive to Postgres only once.
func TestHistoryMovesUpToTheFirstEntryThatStays(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	record(t, db, 2, 60*day, uuid.New())
	record(t, db, 1, time.Hour, uuid.New())
	record(t, db, 2, 50*day, uuid.New())
	require.Equal(t, 2, moveAll(t, archive.New(db, folder.New(t.TempDir())), archive.History))
	require.Len(t, live(t, db), 3)
}

func TestDeletedApplicationsMoveWithAllThatIsTheirs(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	add := func(name string, deleted *time.Time, jobs ...string) uuid.UUID {
		id := uuid.New()
		exec(t, db, `insert into applications (id, name, namespace, descriptor, deleted_at)
values ($1, $2, $2, 'text', $3)`, id, name, deleted)
		var first *uuid.UUID
		for _, state := range jobs {
			job := uuid.New()
			exec(t, db, `insert into jobs (id, application_id, component, cleans, type, state, owner_id, instruction,
	lost_after, resource_name) values ($1, $2, 'web', $3, 'DeleteDeployment', $4, 'agent', '{}', '1m', 'web')`, job, id, first, state)
			first = &job
		}
		exec(t, db, `insert into policy_actions (id, policy_id, instance, component, remediation, violation,
	started_at, received_at) values ($1, $1, $2, 'web', 'none', '{}', now(), now())`, uuid.New(), id.String())
		return id
	}
	old, young := time.Now().Add(-2*retention), time.Now().Add(-time.Hour)
	gone := add("gone", &old, "Finished", "Finished")
	add("fresh", &young, "Finished")
	add("removing", &old, "Created")
	add("running", nil)
	o := folder.New(t.TempDir())
	a := archive.New(db, o)
	require.Equal(t, 1, moveAll(t, a, archive.Applications))

	names, err := store.Collect(t.Context(), db, "read names", pgx.RowTo[string], `select name from applications order by name`)
	require.NoError(t, err)
	require.Equal(t, []string{"fresh", "removing", "running"}, names)
	var left int
	require.NoError(t, db.QueryRow(t.Context(),
		`select (select count(*) from jobs) + (select count(*) from policy_actions)`).Scan(&left))
	require.Equal(t, 2+3, left)

	var line struct {
		Application struct{ Name, Descriptor string }
		Jobs        []struct{ State string }
		Actions     []struct{ Instance string }
	}
	index := lines(t, o, archive.Applications, &line)
	require.Equal(t, "gone", line.Application.Name)
	require.Len(t, line.Jobs, 2)
	require.Equal(t, gone.String(), line.Actions[0].Instance)
	require.Equal(t, []uuid.UUID{gone}, index.Applications)
}

func TestOldSnapshotsMoveButThePresentOne(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	add := func(age time.Duration) uuid.UUID {
		id := uuid.Must(uuid.NewV7())
		exec(t, db, `insert into topology_snapshots (id, at, changes, taxonomy) values ($1, $2, '[]', '{"cluster": {}}')`,
			id, time.Now().Add(-age))
		return id
	}
	add(61 * day)
	present := add(60 * day)
	add(59 * day)
	exec(t, db, `insert into topology (snapshot, taxonomy, at) values ($1, '{}', now())`, present)
	o := folder.New(t.TempDir())
	a := archive.New(db, o)
	require.Equal(t, 2, moveAll(t, a, archive.Topology))
	var line struct{ Taxonomy map[string]any }
	require.Equal(t, 2, lines(t, o, archive.Topology, &line).Lines)
	require.Contains(t, line.Taxonomy, "cluster")

	for range 5 { // young, but too many
		add(time.Minute)
	}
	n, err := a.Move(t.Context(), archive.Topology, time.Now().Add(-retention), 3)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	var left int
	require.NoError(t, db.QueryRow(t.Context(), `select count(*) from topology_snapshots`).Scan(&left))
	require.Equal(t, 4, left)
}

// lines reads the only object of the kind without Postgres, with the index next to it, and decodes its first line.
func lines(t *testing.T, o objects.Store, kind archive.Kind, first any) archive.Index {
	t.Helper()
	keys, err := o.List(t.Context(), string(kind)+"/")
	require.NoError(t, err)
	require.Len(t, keys, 2, "the object and its index")
	body, err := o.Get(t.Context(), keys[1])
	require.NoError(t, err)
	var index archive.Index
	if json.Unmarshal(body, &index) != nil {
		body, err = o.Get(t.Context(), keys[0])
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(body, &index))
	}
	if body, err = o.Get(t.Context(), index.Key); err == nil {
		z, err := gzip.NewReader(bytes.NewReader(body))
		require.NoError(t, err)
		require.NoError(t, json.NewDecoder(z).Decode(first))
	}
	require.NoError(t, err)
	return index
}

func TestTwoRunsAtOnceMoveEachLineOnce(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	record(t, db, 2000, 60*day, uuid.New())
	before := text(t, live(t, db))
	o := folder.New(t.TempDir())
	failed := make(chan error, 4)
	for range cap(failed) {
		go func() {
			_, err := archive.New(db, o).Move(t.Context(), archive.History, time.Now().Add(-retention), keep)
			failed <- err
		}()
	}
	for range cap(failed) {
		require.NoError(t, <-failed)
	}
	moveAll(t, archive.New(db, o), archive.History)
	require.Equal(t, before, text(t, archived(t, archive.New(db, o))))
}

// TestAPageOfTheArchiveIsNoLargerThanOneOfWhatIsThere: it continues from one object to the next.
func TestAPageOfTheArchiveIsNoLargerThanOneOfWhatIsThere(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	exec(t, db, `insert into history (at, event, data)
select $1, 'e', jsonb_build_object('d', repeat('d', $2)) from generate_series(1, 15) i`,
		time.Now().Add(-2*retention), store.PageBytes*2/5) // two fit into a page, six into an object
	all := []int64{}
	for _, e := range live(t, db) {
		all = append(all, e.ID)
	}
	require.Len(t, all, 2, "as the listing of what is not archived")
	a := archive.New(db, folder.New(t.TempDir()))
	require.Equal(t, 15, moveAll(t, a, archive.History))
	var up, down []int64
	for after := int64(0); len(up) < 15; after = up[len(up)-1] {
		list, err := a.After(t.Context(), nil, after, 100)
		require.NoError(t, err)
		require.Len(t, list, min(2, 15-len(up)))
		for _, e := range list {
			up = append(up, e.ID)
		}
	}
	for before := int64(math.MaxInt64); len(down) < 15; before = down[len(down)-1] {
		list, cut, err := a.Before(t.Context(), nil, before, 100)
		require.NoError(t, err)
		require.Len(t, list, min(2, 15-len(down)))
		require.Equal(t, len(down)+len(list) < 15, cut)
		for _, e := range slices.Backward(list) {
			down = append(down, e.ID)
		}
	}
	require.Equal(t, all, up[13:])
	slices.Reverse(down)
	require.Equal(t, up, down)
}

// opened is a store that records which objects were fetched.
type opened struct {
	objects.Store

	keys *[]string
}

func (o opened) Get(ctx context.Context, key string) ([]byte, error) {
	*o.keys = append(*o.keys, key)
	return o.Store.Get(ctx, key)
}

// TestOnlyObjectsThatMayHoldItAreFetched: a search for one application or one rare event must not read years of
// objects.
func TestOnlyObjectsThatMayHoldItAreFetched(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	var keys []string
	a := archive.New(db, opened{folder.New(t.TempDir()), &keys})
	app := uuid.New()
	say := func(event string, about *uuid.UUID) {
		exec(t, db, `insert into history (at, event, application_id) values ($1, $2, $3)`, time.Now().Add(-60*day), event, about)
		require.Equal(t, 1, moveAll(t, a, archive.History))
	}
	say("often", &app)
	say("often", nil)
	say("rare", nil)
	say("often", nil)
	for name, c := range map[string]struct {
		application *uuid.UUID
		events      []string
		found       int
	}{
		"everything":              {nil, nil, 4},
		"of one application":      {&app, nil, 1},
		"of one event":            {nil, []string{"rare", "never"}, 1},
		"of both":                 {&app, []string{"often"}, 1},
		"what no object can hold": {&app, []string{"rare"}, 0},
	} {
		keys = nil
		up, err := a.After(t.Context(), c.application, 0, 100, c.events...)
		require.NoError(t, err, name)
		require.Len(t, up, c.found, name)
		require.Len(t, keys, c.found, name)
		down, _, err := a.Before(t.Context(), c.application, math.MaxInt64, 100, c.events...)
		require.NoError(t, err, name)
		require.Equal(t, up, down, name)
		require.Len(t, keys, 2*c.found, name)
	}

	exec(t, db, `update archives set events = null`) // as rows of an earlier version
	up, err := a.After(t.Context(), nil, 0, 100, "rare")
	require.NoError(t, err)
	require.Len(t, up, 1)
}
