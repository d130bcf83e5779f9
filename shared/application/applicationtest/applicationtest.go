// Package applicationtest is a store with applications in it: a World with the steps that people and agents take there, and
// functions for tests that start from an application or its place.
package applicationtest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/compose"
	"github.com/littoral-project/littoral/shared/dialect"
	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

// World is one database with the steps that a test takes in it. Tests embed it and add their own.
type World struct {
	testing.TB
	DB *store.DB
}

// New returns a world with an empty database. When the test ends, what is reserved must be what its jobs reserve.
func New(t testing.TB) World {
	t.Helper()
	w := World{t, storetest.New(t)}
	t.Cleanup(func() {
		if !t.Failed() {
			RequireReservations(t, w.DB)
		}
	})
	return w
}

// wrongReservations finds the nodes of which something else is noted as reserved than their jobs reserve.
const wrongReservations = `with held as (
  select cluster, node, count(*), sum(cpu_milli), sum(memory_bytes), count(*) filter (where cpu_milli = 0),
    count(*) filter (where memory_bytes = 0), count(*) filter (where devices <> '{}')
  from jobs where cluster <> '' and not (state = 'Finished' and (type = 'DeleteDeployment' or owner_id = '')) group by cluster, node)
select coalesce(string_agg(w, ', '), '') from (
  select 'noted: ' || r::text from (table node_reservations except table held) r
  union all select 'held: ' || r::text from (table held except table node_reservations) r) wrong (w)`

// RequireReservations fails the test if what is noted as reserved on nodes is not what jobs reserve there.
func RequireReservations(t testing.TB, q store.Querier) {
	t.Helper()
	var wrong string
	require.NoError(t, q.QueryRow(context.Background(), wrongReservations).Scan(&wrong))
	require.Empty(t, wrong)
}

// lease is that of jobs in these tests.
const lease = time.Minute

// Tx runs the step in a transaction.
func (w World) Tx(step func(ctx context.Context, tx *store.Tx) error) error {
	return w.DB.Tx(store.WithSource(context.Background(), "/test"), step)
}

// Must is Tx of a step that goes well.
func (w World) Must(step func(ctx context.Context, tx *store.Tx) error) {
	w.Helper()
	require.NoError(w, w.Tx(step))
}

// Get returns the application.
func (w World) Get(id uuid.UUID) *application.Application {
	w.Helper()
	a, err := application.Get(context.Background(), w.DB, id)
	require.NoError(w, err)
	return a
}

// Job returns the job.
func (w World) Job(id uuid.UUID) *job.Job {
	w.Helper()
	j, err := job.Get(context.Background(), w.DB, id)
	require.NoError(w, err)
	return j
}

// Claim makes the agent the owner of the job.
func (w World) Claim(id uuid.UUID, agent string) error {
	return w.Tx(func(ctx context.Context, tx *store.Tx) error { return job.Claim(ctx, tx, id, agent, lease) })
}

// Report is what an agent says of a job.
func (w World) Report(r job.Report) error {
	return w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := application.Report(ctx, tx, r, lease)
		return err
	})
}

// Finish reports that the job is done and what it runs is available, as its owner does.
func (w World) Finish(j *job.Job) error {
	r := job.Report{ID: j.ID, OwnerID: j.OwnerID, Type: j.Type, State: job.Finished, Epoch: j.Epoch}
	r.Resource = job.Resource{UUID: "res-" + j.ID.String(), Name: j.Component, Conditions: []job.Condition{
		{Type: job.ConditionApplied, Status: "True"}, {Type: job.ConditionAvailable, Status: "True"},
	}}
	return w.Report(r)
}

// Published returns how many events of the type were published.
func (w World) Published(typ string) int { return len(storetest.Published(w.DB, typ)) }

// Parse reads a descriptor as it is handed in.
func Parse(document []byte) (*appmodel.Application, error) {
	return dialect.Decode(dialect.Of(document), document, compose.Read)
}

// Put is application.Submit for a document that nobody has read before.
func Put(ctx context.Context, tx *store.Tx, s application.Submission) (a *application.Application, fresh bool, err error) {
	if s.Parsed, err = Parse(s.Document); err != nil {
		return nil, false, err
	}
	return application.Submit(ctx, tx, s)
}

// Update gives the application another descriptor.
func Update(
	ctx context.Context, tx *store.Tx, id uuid.UUID, document []byte, lostAfter time.Duration,
) (*application.Application, error) {
	app, err := Parse(document)
	if err != nil {
		return nil, err
	}
	return application.NewChange(id, document, app).Put(ctx, tx, "", etag.Match{}, lostAfter)
}

// Submit stores the application of the descriptor.
func Submit(t testing.TB, db *store.DB, descriptor string) (a *application.Application) {
	t.Helper()
	in := application.Submission{Document: []byte(descriptor), LostAfter: time.Minute}
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		a, _, err = Put(ctx, tx, in)
		return err
	}))
	return a
}

// Place decides where the application's jobs run: the first at the first of the targets, and so on.
func Place(t testing.TB, db *store.DB, id uuid.UUID, targets ...job.Target) {
	t.Helper()
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		a, err := application.Lock(ctx, tx, id)
		if err != nil {
			return err
		}
		for i, to := range targets {
			if err := a.Jobs[i].Place(ctx, tx, to, "for the test"); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Job returns the first job of the application that does not clean up after another.
func Job(t testing.TB, db *store.DB, id uuid.UUID) *job.Job {
	t.Helper()
	jobs, err := job.OfApplications(t.Context(), db, id)
	require.NoError(t, err)
	for _, j := range jobs {
		if j.Cleans == nil {
			return j
		}
	}
	require.Fail(t, "no job")
	return nil
}
