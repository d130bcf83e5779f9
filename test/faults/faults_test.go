// Package faults_test kills the functions at every boundary between two effects and shows that the result is the same.
//
// The chain is the whole life of an application: submitted, placed, executed, drained, replaced, remediated, stopped,
// started, deleted. There is a boundary before and after each SQL statement and each publish. The harness counts them
// in a run without faults and then kills the process, like kill -9, at each in turn. After the kill the user and the
// agent repeat requests without an answer, the Broker delivers again, and the sweep publishes events that were left in
// the outbox. In the end every event is delivered three more times in reversed order. The state must then equal that of
// the run without faults.
//
// "go test" covers a sample of the boundaries; LITTORAL_FAULTS=all (make faults) covers each.
package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// sampled is how many boundaries the short form covers.
const sampled = 40

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

// states runs the chain and returns the state after each of its steps.
func states(w *world, chain func(*world, func(string))) string {
	var all []string
	chain(w, func(step string) { all = append(all, "-- "+step, w.dump()) })
	return strings.Join(all, "\n")
}

// sweep runs the chain without faults, and then once for each boundary counted in that run.
func sweep(t *testing.T, open func(*testing.T, int) *world, chain func(*world, func(string))) {
	t.Helper()
	reference := open(t, 0)
	want := states(reference, chain)
	total := reference.passed()
	end := reference.dump()
	require.NotEmpty(t, want)
	require.NotContains(t, want, "\noutbox ", "no event may be left")
	reference.repeatAll()
	same(t, end, reference.dump(), "delivering everything again changed the state")

	stride := max(total/sampled, 1)
	if os.Getenv("LITTORAL_FAULTS") == "all" {
		stride = 1
	}
	var covered atomic.Int64
	t.Run("killed", func(t *testing.T) {
		slots := make(chan struct{}, workers)
		for k := 1; k <= total; k += stride {
			t.Run(fmt.Sprintf("at boundary %d", k), func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				w := open(t, k)
				got := states(w, chain)
				if w.deaths == 0 { // this run had a statement less, for instance because no race made it repeat one
					require.Less(t, w.passed(), k, "the process was to die once")
				} else {
					covered.Add(1)
				}
				same(t, want, got, "the fault changed the state")
				w.repeatAll()
				same(t, end, w.dump(), "delivering everything again changed the state")
			})
		}
	})
	fmt.Printf("fault sweep: %d of %d boundaries covered\n", covered.Load(), total)
}

func TestBrokerAwayForFiveMinutes(t *testing.T) {
	reference := newWorld(t, 0)
	reference.chain(func(string) {})
	want := reference.dump()

	w := newWorld(t, 0)
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
	reference := newWorld(t, 0)
	reference.chain(func(string) {})
	want := reference.dump()

	w := newWorld(t, 0)
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
