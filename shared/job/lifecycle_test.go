package job

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

// jobs are those of one application.
type jobs struct {
	*testing.T
	db          *store.DB
	application uuid.UUID
}

func oneApplication(t *testing.T) *jobs {
	w := &jobs{t, storetest.New(t), uuid.New()}
	_, err := w.db.Exec(t.Context(), `insert into applications (id, name, description, namespace, descriptor, owner)
values ($1, 'shop', '', 'shop-1', '', 'alice')`, w.application)
	require.NoError(t, err)
	return w
}

func (w *jobs) tx(do func(ctx context.Context, tx *store.Tx) error) error {
	return w.db.Tx(store.WithSource(w.Context(), "/test"), do)
}

// stored returns a job that is in the database as it was made.
func (w *jobs) stored(replica int, made func(j *Job)) *Job {
	w.Helper()
	j := New(w.application, "web", replica, Instruction{ComponentName: "web", Contents: []Content{{"web", "kind: Old"}}})
	made(j)
	require.NoError(w, w.tx(func(_ context.Context, tx *store.Tx) error {
		j.insert(tx)
		return nil
	}))
	return j
}

func (w *jobs) now(j *Job) *Job {
	w.Helper()
	now, err := Get(w.Context(), w.db, j.ID)
	require.NoError(w, err)
	return now
}

func (w *jobs) told(j *Job, move Move) (times int) {
	w.Helper()
	require.NoError(w, w.db.QueryRow(w.Context(), `select count(*) from history where job_id = $1 and event = 'job.' || $2`, j.ID, move).Scan(&times))
	return times
}

// TestReplace_keepsTheContentOfWhatIsStopped: it is what runs after the next start.
func TestReplace_keepsTheContentOfWhatIsStopped(t *testing.T) {
	t.Parallel()
	w := oneApplication(t)
	j := w.stored(0, func(j *Job) { j.State, j.Type = Finished, Delete })
	in := Instruction{ComponentName: "web", Contents: []Content{{"web", "kind: New"}}}
	require.NoError(t, w.tx(func(ctx context.Context, tx *store.Tx) error { return j.Replace(ctx, tx, in) }))
	require.Equal(t, in.Contents, w.now(j).Instruction.Contents)
}

// TestRemediate_asksOnlyForWhatRuns: nothing else could carry it out, and nothing is kept of it.
func TestRemediate_asksOnlyForWhatRuns(t *testing.T) {
	t.Parallel()
	w := oneApplication(t)
	for replica, state := range []State{Created, Progressing, Degraded, Finished} {
		j := w.stored(replica, func(j *Job) { j.State, j.OwnerID, j.Target = state, "agent", Target{"ocm", "edge", "n1"} })
		err := w.tx(func(ctx context.Context, tx *store.Tx) error {
			return j.Remediate(ctx, tx, Remedy{Type: ScaleOut}, "too slow")
		})
		if state == Finished {
			require.NoError(t, err)
			require.Len(t, w.now(j).Remediations, 1)
			continue
		}
		require.Equal(t, problem.Conflict, problem.KindOf(err), state)
		require.Empty(t, w.now(j).Remediations, state)
	}
}

// TestWait_tellsAReasonOnce: the matchmaker tries again and again, and history has a line for each new reason.
func TestWait_tellsAReasonOnce(t *testing.T) {
	t.Parallel()
	w := oneApplication(t)
	j := w.stored(0, func(*Job) {})
	for i, wait := range []struct {
		reason string
		news   bool
	}{{"no node has a camera", true}, {"no node has a camera", false}, {"no node answers", true}, {"no node answers", false}} {
		now := w.now(j)
		require.NoError(t, w.tx(func(ctx context.Context, tx *store.Tx) error {
			news, err := now.Wait(ctx, tx, wait.reason)
			require.Equal(t, wait.news, news, i)
			return err
		}))
		require.Equal(t, wait.reason, w.now(j).Conditions[0].Message)
	}
	require.Equal(t, 2, w.told(j, Wait))
}

// TestRestored_givesAgentsTheirJobsAgain: only they can compare what they run. Managers of our own compare by themselves.
func TestRestored_givesAgentsTheirJobsAgain(t *testing.T) {
	t.Parallel()
	w := oneApplication(t)
	taken := func(owner string, state State) func(j *Job) {
		return func(j *Job) { j.OwnerID, j.State, j.Target, j.Epoch = owner, state, Target{"ocm", "edge", "n1"}, 7 }
	}
	agents := w.stored(0, taken("agent", Finished))
	managers := w.stored(1, taken("littoral-ocm", Finished))
	free := w.stored(2, func(j *Job) { j.Epoch = 7 })
	require.NoError(t, w.tx(func(ctx context.Context, tx *store.Tx) error { return Restored(ctx, tx, 1000, "littoral-%") }))
	for j, state := range map[*Job]State{agents: Created, managers: Finished, free: Created} {
		now := w.now(j)
		require.Equal(t, state, now.State, j.OwnerID)
		require.EqualValues(t, 1007, now.Epoch, "it is newer than any decision since the backup")
	}
	require.Equal(t, Replace, w.now(agents).Type)
	require.Equal(t, []int{1, 0, 0}, []int{w.told(agents, Change), w.told(managers, Change), w.told(free, Change)})
}
