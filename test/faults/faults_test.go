// Package faults_test kills the functions at every boundary between two effects and shows that the result is the same.
//
// The chain is the whole life of an application: submitted, placed, executed, drained, replaced, remediated, stopped,
// started, deleted. There is a boundary before and after each SQL statement and each publish. The harness counts those of
// each step in a run without faults. In the other runs it kills the process, like kill -9, at one boundary of each step,
// until each boundary has had its turn. After a kill the user and the agent repeat requests without an answer, the Broker
// delivers again, and the sweep publishes events that were left in the outbox. After each step the state must equal that
// of the run without faults. In the end every event is delivered three more times in reversed order, which must change nothing.
//
// "go test" does some of the runs; LITTORAL_FAULTS=all (make faults) does all, 2/8 the second
// eighth of all, and a number so many of each chain.
package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(envChild) != "" {
		if err := host(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	storetest.Main(m)
}

// sampled is how many runs of a chain the short form does.
const sampled = 4

// workers is how many runs are concurrent; each has its own database.
const workers = 2

func TestKilledAtEveryBoundary(t *testing.T) {
	sweep(t, newWorld, (*world).chain)
}

// TestKilledWhileDeploying is about the functions that deploy by themselves: requests to API servers and to
// Nuvla are effects as well.
func TestKilledWhileDeploying(t *testing.T) {
	t.Run("through a hub", func(t *testing.T) { sweep(t, newHubWorld, (*world).managedChain) })
	t.Run("straight to clusters", func(t *testing.T) { sweep(t, newClusterWorld, (*world).managedChain) })
	t.Run("through Nuvla", func(t *testing.T) { sweep(t, newNuvlaWorld, (*world).managedChain) })
}

// TestKilledWhileLinking is about the functions that bring links to clusters.
func TestKilledWhileLinking(t *testing.T) { sweep(t, newLinkedWorld, (*world).linkedChain) }

// state is what there was after a step.
type state struct{ step, dump string }

// states runs the chain and returns the state after each of its steps.
func states(w *world, chain func(*world, func(string))) (all []state) {
	w.t.Helper()
	chain(w, func(step string) { all = append(all, state{step, w.dump()}) })
	return all
}

// sweep runs the chain without faults, and then as often as it takes to kill the functions at each boundary of each step.
func sweep(t *testing.T, open func(*testing.T) *world, chain func(*world, func(string))) {
	t.Helper()
	reference := open(t)
	want := states(reference, chain)
	end := reference.dump()
	require.NotEmpty(t, want)
	require.NotContains(t, end, "\noutbox ", "no event may be left")
	reference.repeatAll()
	same(t, end, reference.dump(), "delivering everything again changed the state")

	plans := schedule(t, os.Getenv("LITTORAL_FAULTS"), reference.passed, sampled)
	var covered atomic.Int64
	t.Run("killed", func(t *testing.T) {
		slots := make(chan struct{}, workers)
		for i, plan := range plans {
			t.Run(fmt.Sprintf("run %d", i+1), func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				w := open(t)
				w.kills = plan
				got := states(w, chain)
				covered.Add(int64(w.deaths))
				sameStates(t, want, got, plan)
				w.repeatAll()
				same(t, end, w.dump(), "delivering everything again changed the state")
			})
		}
	})
	fmt.Printf("fault sweep: %d of %d boundaries covered in %d runs\n", covered.Load(), sum(reference.passed), len(plans))
}

// schedule says for each run at which boundary of each step the functions are killed, so that all runs together cover all
// boundaries, each once, or as many as fit into fewer runs: all, a part of all such as 2/8, or the number asked for, or else
// the number given.
func schedule(t *testing.T, asked string, boundaries map[string]int, runs int) (plans []map[string]int) {
	t.Helper()
	most := 0
	for _, n := range boundaries {
		most = max(most, n)
	}
	const want = "LITTORAL_FAULTS is all, a part of all (2/8), or the number of runs"
	part, parts := 1, 1
	first, second, divided := strings.Cut(asked, "/")
	switch {
	case asked == "":
	case asked == "all":
		runs = most
	case divided:
		var err, err2 error
		part, err = strconv.Atoi(first)
		parts, err2 = strconv.Atoi(second)
		require.NoError(t, errors.Join(err, err2), want)
		require.True(t, 1 <= part && part <= parts, want)
		runs = most
	default:
		var err error
		runs, err = strconv.Atoi(asked)
		require.NoError(t, err, want)
	}
	runs = min(runs, most)
	for r := range runs {
		if r%parts != part-1 {
			continue
		}
		plan := map[string]int{}
		for step, n := range boundaries {
			if share := func(r int) int { return r * n / runs }; share(r+1) > share(r) {
				plan[step] = share(r) + 1
			}
		}
		plans = append(plans, plan)
	}
	return plans
}

func TestScheduleCoversEachBoundaryOnce(t *testing.T) {
	steps := map[string]int{"submit": 7, "drain": 3, "look": 1, "nothing": 0}
	seen := map[string]int{}
	plans := schedule(t, "all", steps, sampled)
	for _, plan := range plans {
		for step, at := range plan {
			seen[fmt.Sprint(step, " ", at)]++
		}
	}
	require.Len(t, plans, 7)
	require.Len(t, seen, 7+3+1)
	for at, n := range seen {
		require.Equal(t, 1, n, at)
	}
	require.Equal(t, []map[string]int{{"submit": 1, "drain": 1}, {"submit": 4, "drain": 2, "look": 1}}, schedule(t, "2", steps, sampled))
	var parts []map[string]int
	for _, part := range []string{"1/3", "2/3", "3/3"} {
		parts = append(parts, schedule(t, part, steps, sampled)...)
	}
	require.ElementsMatch(t, plans, parts)
}

func sum(boundaries map[string]int) (total int) {
	for _, n := range boundaries {
		total += n
	}
	return total
}

// sameStates compares step by step, and says at which boundary the functions were killed in the first step that differs.
func sameStates(t *testing.T, want, got []state, plan map[string]int) {
	t.Helper()
	require.Len(t, got, len(want))
	for i, w := range want {
		if w != got[i] {
			same(t, w.dump, got[i].dump, fmt.Sprintf("after %q, killed at its boundary %d, the state differs (all kills: %v)", w.step, plan[w.step], plan))
			return
		}
	}
}

func TestBrokerAwayForFiveMinutes(t *testing.T) {
	reference := newWorld(t)
	reference.chain(func(string) {})
	want := reference.dump()

	w := newWorld(t)
	w.chain(func(step string) {
		switch step {
		case "see the topology":
			w.away(true)
		case "submit":
			require.Empty(t, w.agent(agentID).List(), "nothing can go on while the Broker is away")
			// Five minutes pass for events in the outbox.
			_, err := w.db.Exec(context.Background(), `update outbox set created_at = created_at - interval '5 minutes'`)
			require.NoError(t, err)
			w.away(false)
			w.deliverAll()
		}
	})
	same(t, want, w.dump(), "the fault changed the state")
}

func (w *world) away(away bool) {
	var err error
	if away {
		err = errors.New("away")
	}
	w.broker.Fail(err)
}

// TestPostgresRestarted closes every connection between two steps, like a restart of Postgres. In the middle of steps,
// a process closes connections again and again.
func TestPostgresRestarted(t *testing.T) {
	reference := newWorld(t)
	reference.chain(func(string) {})
	want := reference.dump()

	w := newWorld(t)
	stop := make(chan struct{})
	done := make(chan struct{})
	restarts := 0
	go func() {
		defer close(done)
		// The intervals grow, so that on a slow machine a transaction eventually fits into one.
		for gap := 15 * time.Millisecond; ; gap = min(gap+gap/20, time.Second/4) {
			select {
			case <-stop:
				return
			case <-time.After(gap):
			}
			_, err := reference.db.Exec(context.Background(), `select pg_terminate_backend(pid) from pg_stat_activity
where datname = (select regexp_replace($1, '^.*/([^/?]+)(\?.*)?$', '\1')) and application_name = 'littoral'`, w.url)
			if err == nil {
				restarts++
			}
		}
	}()
	w.chain(func(string) {})
	close(stop)
	<-done
	require.Positive(t, restarts)
	// Workers and tasks mark what they have taken after their work; a mark that is lost is made when the event is sent again.
	same(t, withoutMarks(want), withoutMarks(w.dump()), "the fault changed the state")
}

// withoutMarks leaves out how many events each consumer has marked as taken.
func withoutMarks(dump string) string {
	var kept []string
	for line := range strings.SplitSeq(dump, "\n") {
		if !strings.HasPrefix(line, "inbox ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
