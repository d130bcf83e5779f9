package job

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestClaim_movesAsTheTableSays: taking is one statement, which knows the table of transitions by its parameters alone.
func TestClaim_movesAsTheTableSays(t *testing.T) {
	t.Parallel()
	w := oneApplication(t)
	const me, other = "agent-1", "agent-2"
	for name, row := range map[string]struct {
		owner  string
		lapsed bool
		move   Move // "" = never
		states []State
	}{
		"what is free":             {"", false, Promote, []State{Created, Finished}},
		"its own":                  {me, false, Promote, []State{Created, Progressing, Finished, Degraded}},
		"its own, lapsed":          {me, true, Promote, []State{Progressing, Degraded}},
		"another's":                {other, false, "", []State{Created, Progressing, Finished, Degraded}},
		"another's that is lapsed": {other, true, TakeOver, []State{Created, Progressing, Finished, Degraded}},
	} {
		for _, state := range row.states {
			t.Run(name+", "+string(state), func(t *testing.T) {
				j := New(w.application, "web", 0, Instruction{})
				j.State, j.OwnerID, j.Target = state, row.owner, Target{"ocm", "edge", "n1"}
				until := time.Now().Add(time.Minute)
				if row.lapsed {
					until = time.Now().Add(-time.Minute)
				}
				j.LeaseUntil = &until
				require.NoError(t, w.tx(func(_ context.Context, tx *store.Tx) error {
					j.insert(tx)
					return nil
				}))
				defer func() {
					_, err := w.db.Exec(t.Context(), `delete from jobs`)
					require.NoError(t, err)
				}()
				err := w.tx(func(ctx context.Context, tx *store.Tx) error { return Claim(ctx, tx, j.ID, me, time.Minute) })
				now, getErr := Get(t.Context(), w.db, j.ID)
				require.NoError(t, getErr)
				var moves []Move
				require.NoError(t, w.db.QueryRow(t.Context(), `select coalesce(array_agg(substr(event, 5)), '{}') from history
where job_id = $1 and event <> 'job.submitted' and (from_state, to_state) = ($2, $3)`, j.ID, state, now.State).Scan(&moves))

				to := transitionOf(Promote).to
				switch {
				case row.owner == me && state == to: // a renewal
					require.NoError(t, err)
					require.Empty(t, moves)
				case slices.Contains(transitionOf(row.move).from, state):
					require.NoError(t, err)
					require.Equal(t, []Move{row.move}, moves)
					to = transitionOf(row.move).to
				default:
					require.Equal(t, problem.Conflict, problem.KindOf(err))
					require.Equal(t, []any{state, row.owner}, []any{now.State, now.OwnerID})
					return
				}
				require.Equal(t, []any{to, me}, []any{now.State, now.OwnerID})
			})
		}
	}
}
