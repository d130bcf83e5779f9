package deployer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/manifest"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// backup copies the jobs in the database, for restore to bring them back.
func (w *world) backup() (restore func()) {
	w.Helper()
	_, err := w.DB.Exec(w.Context(), `create table backup as table jobs`)
	require.NoError(w, err)
	return func() {
		w.Helper()
		w.Must(func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.Exec(ctx, `delete from jobs`); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `insert into jobs table backup`)
			return err
		})
	}
}

// raise marks the jobs as a restore does.
func (w *world) raise() {
	w.Helper()
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		return job.Restored(ctx, tx, 1_000_000, "deploymentmanager-%")
	})
}

// newer requires that the database says that the job's copy is newer than it knows, and neither that it runs nor that
// it is gone.
func (w *world) newer(a *application.Application) {
	w.Helper()
	j := w.job(a)
	require.False(w, j.Available())
	require.False(w, j.Gone())
	c := j.Condition(job.ConditionAvailable)
	require.NotNil(w, c)
	require.Equal(w, "Unknown", c.Status)
	require.Equal(w, orchestrator.ReasonNewerCopy, c.Reason)
	require.Contains(w, c.Message, "Backup and restore")
	now, err := application.Get(w.Context(), w.DB, a.ID)
	require.NoError(w, err)
	_, message := now.Status()
	require.Contains(w, message, c.Message)
	before := w.history(a)
	w.turn()
	require.Equal(w, before, w.history(a), "that is said once")
}

// TestBooksThatWereRestoredAreBroughtAbout: the database is restored from a backup, and the clusters have later
// decisions.
func TestBooksThatWereRestoredAreBroughtAbout(t *testing.T) {
	t.Parallel()
	moved := func(to string) func(*world, *application.Application) {
		return func(w *world, a *application.Application) {
			w.displace(a)
			w.place(a, to)
			w.deliver()
			w.turn()
			require.True(w, w.job(a).Available())
		}
	}
	remove := func(w *world, a *application.Application) {
		w.Must(func(ctx context.Context, tx *store.Tx) error {
			_, _, err := application.Delete(ctx, tx, a.ID, true)
			return err
		})
		w.deliver()
		w.turn()
	}
	rows := map[string]struct {
		since func(*world, *application.Application) // after the backup
		then  func(*world, *application.Application) // after the restore
		told  bool                                   // the database reports a newer copy
		image string                                 // that runs in the end, in the first cluster; empty: none
	}{
		"a copy that was made anew": {since: moved("one"), told: true, image: "web:1"},
		"a copy that has moved":     {since: moved("two"), image: "web:1"},
		"a copy that is updated now": {
			since: moved("one"), told: true, image: "web:2",
			then: func(w *world, a *application.Application) {
				w.update(a, "web:2")
				w.deliver()
				w.turn()
			},
		},
		"a copy that is removed now":             {since: moved("one"), then: remove, told: true},
		"a copy that has moved and is to go now": {since: moved("two"), then: remove},
		"a copy that was changed in place": {
			since: func(w *world, a *application.Application) {
				w.update(a, "web:2")
				w.deliver()
				w.turn()
			},
			image: "web:1",
		},
	}
	for kind, open := range worlds {
		for name, row := range rows {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := open(t)
				a := w.run("one")
				restore := w.backup()
				row.since(w, a)
				restore()
				if row.then != nil {
					row.then(w, a)
				}
				w.turn()
				if row.told {
					w.newer(a)
				}
				w.raise()
				w.turn()
				w.turn()
				require.Empty(t, w.copies("two"))
				if row.image == "" {
					require.True(t, w.job(a).Gone(), "%+v", w.job(a).Conditions)
					require.Empty(t, w.copies("one"))
					return
				}
				require.True(t, w.job(a).Available(), "%+v", w.job(a).Conditions)
				require.Equal(t, "one", w.job(a).Cluster)
				require.Len(t, w.copies("one"), 1)
				runs := w.agents["one"].Cluster.Get(w.copies("one")[0])
				require.Contains(t, fmt.Sprint(runs.Object["spec"]), row.image)
				require.Equal(t, w.job(a).Epoch, manifest.EpochOf(runs))

				history, calls := w.history(a), w.agents["one"].Cluster.Calls()
				w.turn()
				require.Equal(t, history, w.history(a))
				require.Equal(t, calls, w.agents["one"].Cluster.Calls(), "once is enough")
			})
		}
	}
}

// TestBooksThatWereRestoredGiveAgentsTheirJobsAgain: nothing else compares the copies of agents with the database.
func TestBooksThatWereRestoredGiveAgentsTheirJobsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	report := func(j *job.Job, agent string) error {
		return w.DB.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := application.Report(ctx, tx, job.Report{
				ID: j.ID, OwnerID: agent, State: job.Finished, Epoch: j.Epoch, Resource: job.Resource{UUID: "copy of " + agent},
			}, time.Minute)
			return err
		})
	}
	carryOut := func(a *application.Application, agent string) *job.Job {
		w.Must(func(ctx context.Context, tx *store.Tx) error {
			return job.Claim(ctx, tx, w.job(a).ID, agent, time.Minute)
		})
		j := w.job(a)
		require.NoError(t, report(j, agent))
		require.True(t, w.job(a).Available())
		return j
	}
	a := w.submit()
	w.place(a, "one")
	before := carryOut(a, "agent-one")
	restore := w.backup()
	w.displace(a)
	w.place(a, "two")
	since := carryOut(a, "agent-two")
	restore()
	w.raise()
	require.Equal(t, problem.Conflict, problem.KindOf(report(before, "agent-one")))
	require.Equal(t, problem.Conflict, problem.KindOf(report(since, "agent-two")))
	given, err := job.Executable(t.Context(), w.DB, "ocm", "agent-one")
	require.NoError(t, err)
	require.Len(t, given, 1)
	require.Greater(t, given[0].Epoch, since.Epoch)
	carryOut(a, "agent-one")
}
