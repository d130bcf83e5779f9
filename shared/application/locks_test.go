package application_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

// TestReport_ofARemovalWaitsWithNothingInHand: the reports of several removals are followed by a look at all jobs of the
// application. With its own job in hand each would wait for the others, until Postgres ended all but one.
func TestReport_ofARemovalWaitsWithNothingInHand(t *testing.T) {
	t.Parallel()
	for _, typ := range []job.Type{job.Delete, ""} { // or the agent does not say what it was
		w := newWorld(t)
		app, _ := w.submit(shop("a"), "")
		app = w.run(app, "agent-1")
		require.False(t, w.delete(app.ID))
		for _, j := range app.Jobs {
			require.NoError(t, w.Claim(j.ID, "agent-1"))
		}
		reported := make(chan error, len(app.Jobs))
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.Exec(ctx, `select from applications where id = $1 for no key update`, app.ID); err != nil {
				return err
			}
			for _, j := range app.Jobs {
				r := job.Report{ID: j.ID, OwnerID: "agent-1", Type: typ, State: job.Finished, Epoch: j.Epoch}
				go func() { reported <- w.Report(r) }()
			}
			storetest.AwaitBlocked(t, w.DB)
			_, err := tx.Exec(ctx, `select from jobs where application_id = $1 for update nowait`, app.ID)
			return err
		}))
		for range app.Jobs {
			require.NoError(t, <-reported)
		}
		_, err := application.Get(t.Context(), w.DB, app.ID)
		require.Error(t, err, "the last removal has ended the deletion")
	}
}

// TestHandover_letsAReportLeaveACleanUp: a report on a former place holds its job and gives the application a clean-up; the
// handover holds the application and waits for the job.
func TestHandover_letsAReportLeaveACleanUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("agent-1", "c1")
	app, _ := w.submit(shop("a"), "")
	app = w.run(app, "agent-1")
	w.seen("agent-2", "c1")
	found, err := application.Handovers(t.Context(), w.DB)
	require.NoError(t, err)
	require.Len(t, found, 1)
	done := make(chan error)
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		if _, err := job.Lock(ctx, tx, app.Jobs[0].ID); err != nil {
			return err
		}
		go func() { done <- w.Tx(found[0].Do) }()
		storetest.AwaitBlocked(t, w.DB)
		_, err := tx.Exec(ctx, `select from applications where id = $1 for key share nowait`, app.ID) // as a reference does
		return err
	}))
	require.NoError(t, <-done)
	require.Equal(t, "agent-2", w.Job(app.Jobs[0].ID).OwnerID)
}
