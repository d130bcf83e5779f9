package nuvla_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/conformance"
	double "github.com/littoral-project/littoral/test/nuvla"
)

// nth breaks the nth call to the server from now on, before it takes effect or after.
func (w *edges) nth(n int, after bool) {
	for range n - 1 {
		w.server.Fail(double.Fault{Times: 1, Pass: true})
	}
	w.server.Fail(double.Fault{Times: 1, After: after})
}

// TestABrokenCallAnywhereLeavesNoSecondCopy: whichever call of a creation, a replacement, a scaling or a removal is cut off,
// before or after it took effect, a repeat ends where an undisturbed one does.
func TestABrokenCallAnywhereLeavesNoSecondCopy(t *testing.T) {
	t.Parallel()
	for _, compose := range []bool{true, false} {
		for _, after := range []bool{false, true} {
			for step, next := range map[string]func(j *job.Job) *job.Job{
				"creation": func(j *job.Job) *job.Job { return j },
				"replacement": func(j *job.Job) *job.Job {
					other := conformance.As(j, job.Replace)
					other.Epoch = 2
					conformance.With(other, conformance.Image, 4)
					return other
				},
				"scaling": func(j *job.Job) *job.Job { return conformance.Ask(j, job.ScaleUp) },
				"removal": func(j *job.Job) *job.Job { return conformance.As(j, job.Delete) },
			} {
				t.Run(fmt.Sprintf("%s compose=%v after=%v", step, compose, after), func(t *testing.T) {
					t.Parallel()
					broken := 0
					for n := 1; ; n++ {
						w := open(t, compose)
						j := conformance.Job(w.Places()[0], 1)
						if step != "creation" {
							w.Do(t, j)
						}
						asked := next(j)
						before := len(w.server.Calls())
						w.nth(n, after)
						w.try(t, asked)
						whole := len(w.server.Calls())-before < n // it needs fewer calls
						w.server.Heal()
						w.server.Work() // the edge may do something in between
						state, conditions := w.Do(t, asked)
						require.Equal(t, job.Finished, state, "%d: %v", n, conditions)
						deployments, modules := w.server.Of("deployment"), 0
						for _, m := range w.server.Of("module") {
							if m["subtype"] != "project" {
								modules++
							}
						}
						if step == "removal" {
							require.Empty(t, deployments, "%d", n)
							require.Zero(t, modules, "%d", n)
							require.Nil(t, w.Running(t, j.Cluster, j))
						} else {
							require.Len(t, deployments, 1, "%d", n)
							require.Equal(t, 1, modules, "%d", n)
							want := map[string]int64{"creation": 2, "replacement": 4, "scaling": 3}[step]
							require.Equal(t, want, w.Running(t, j.Cluster, j).Replicas, "%d", n)
						}
						if whole {
							require.Greater(t, broken, 2)
							return
						}
						broken++
					}
				})
			}
		}
	}
}

// try carries the job out once, whatever becomes of it.
func (w *edges) try(t *testing.T, j *job.Job) {
	t.Helper()
	if w.compose {
		j = translated(t, j)
	}
	do := w.Orchestrator.Apply
	if j.Type == job.Delete {
		do = w.Orchestrator.Remove
	}
	_ = do(t.Context(), j)
}

// TestCallsAtTheSameTimeMakeOneCopy: an event may be delivered twice at once.
func TestCallsAtTheSameTimeMakeOneCopy(t *testing.T) {
	t.Parallel()
	for range 20 {
		w := open(t, true)
		j := conformance.Job(w.Places()[0], 1)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { w.try(t, j) })
		}
		all.Wait()
		state, conditions := w.Do(t, j)
		require.Equal(t, job.Finished, state, "%v", conditions)
		w.Do(t, j)
		require.Len(t, w.server.Running("one"), 1)
		require.Len(t, w.server.Of("deployment"), 1)
	}
}

func TestWhatFailsAtTheEdgeIsExplained(t *testing.T) {
	t.Parallel()
	w := open(t, true)
	j := conformance.Job(w.Places()[0], 1)
	conformance.With(j, "unpullable:1", 1)
	state, conditions := w.Do(t, j)
	require.Equal(t, job.Degraded, state)
	j.Conditions = conditions
	require.Equal(t, "DeploymentFailed", j.Condition(job.ConditionDegraded).Reason)
	require.Contains(t, j.Condition(job.ConditionDegraded).Message, "manifest for unpullable not found")
}

func TestWhatNuvlaAnswers(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fault double.Fault
		state job.State
		says  string
	}{
		"no rights":       {double.Fault{Call: "POST /api/module", Status: http.StatusForbidden}, job.Degraded, "Forbidden"},
		"no more quota":   {double.Fault{Call: "POST /api/deployment", Status: http.StatusPaymentRequired}, job.Degraded, orchestrator.ReasonQuotaExceeded},
		"nobody":          {double.Fault{Call: "GET /api/nuvlabox"}, job.Progressing, orchestrator.ReasonClusterSilent},
		"a wrong request": {double.Fault{Call: "POST /api/module", Status: http.StatusBadRequest}, job.Degraded, orchestrator.ReasonDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, true)
			w.server.Fail(row.fault)
			state, conditions := w.Do(t, conformance.Job(w.Places()[0], 1))
			require.Equal(t, row.state, state, "%v", conditions)
			require.Contains(t, fmt.Sprint(conditions), row.says)
		})
	}
	w := open(t, true)
	w.server.Fail(double.Fault{Call: "POST /api/module", Status: http.StatusInternalServerError})
	err := w.Orchestrator.Apply(t.Context(), translated(t, conformance.Job(w.Places()[0], 1)))
	require.ErrorIs(t, err, orchestrator.ErrFailing)
}

// TestEachStateOfADeployment: only one that is started, and whose containers the edge reports, is available. What is on its way is
// waited for; what somebody stopped is started again.
func TestEachStateOfADeployment(t *testing.T) {
	t.Parallel()
	w := open(t, true)
	j := conformance.Job(w.Places()[0], 1)
	state, _ := w.Do(t, j)
	require.Equal(t, job.Finished, state)
	id, _ := w.server.Of("deployment")[0]["id"].(string)
	for nuvla, row := range map[string]struct {
		state   job.State
		resumed bool
	}{
		"STARTED": {job.Finished, false}, "ERROR": {job.Degraded, false},
		"CREATED": {job.Progressing, true}, "STOPPED": {job.Progressing, true},
		"STARTING": {job.Progressing, false}, "PENDING": {job.Progressing, false}, "UPDATING": {job.Progressing, false},
		"UPDATED": {job.Progressing, false}, "STOPPING": {job.Progressing, false}, "PAUSING": {job.Progressing, false},
		"PAUSED": {job.Progressing, false}, "SUSPENDING": {job.Progressing, false}, "SUSPENDED": {job.Progressing, false},
	} {
		w.server.Change(id, func(d map[string]any) { d["state"] = nuvla })
		s, err := w.Orchestrator.Observe(t.Context(), translated(t, j))
		require.NoError(t, err, nuvla)
		got, conditions := s.Verdict(translated(t, j))
		require.Equal(t, row.state, got, "%s: %v", nuvla, conditions)
		require.Equal(t, row.resumed, s.Outdated(translated(t, j)), nuvla)
		seen := job.Job{Conditions: conditions}
		if c := seen.Condition(job.ConditionAvailable); nuvla != "STARTED" && c != nil {
			require.NotEqual(t, "True", c.Status, nuvla)
		}
	}
}

func TestAVersionIsMadeForChangedContentOnly(t *testing.T) {
	t.Parallel()
	for _, compose := range []bool{true, false} {
		w := open(t, compose)
		j := conformance.Job(w.Places()[0], 1)
		w.Do(t, j)
		next := conformance.As(j, job.Create)
		next.Epoch = 2
		w.Do(t, next)
		for _, m := range w.server.Of("module") {
			if m["subtype"] != "project" {
				require.Len(t, m["versions"], 1)
			}
		}
		w.Do(t, conformance.Ask(next, job.ScaleUp))
		for _, m := range w.server.Of("module") {
			if m["subtype"] != "project" {
				require.Len(t, m["versions"], 2)
			}
		}
	}
}

func TestCopiesAreListedWithoutWhatTheyContain(t *testing.T) {
	t.Parallel()
	w := open(t, true)
	var all []*job.Job
	for i := range 3 {
		j := conformance.Job(w.Places()[i], int64(i+1))
		w.Do(t, j)
		all = append(all, j)
	}
	before := len(w.server.Calls())
	copies, seen, err := w.Orchestrator.Copies(t.Context())
	require.NoError(t, err)
	require.Len(t, copies, 3)
	for _, j := range all {
		s, err := seen.Observe(t.Context(), translated(t, j))
		require.NoError(t, err)
		state, _ := s.Verdict(translated(t, j))
		require.Equal(t, job.Finished, state)
	}
	calls := w.server.Calls()[before:]
	require.LessOrEqual(t, len(calls), 2+2*2, "each edge and its report are read once: %s", strings.Join(calls, "\n"))

	w.server.Fail(double.Fault{Status: http.StatusBadGateway})
	copies, seen, err = w.Orchestrator.Copies(t.Context())
	require.NoError(t, err)
	require.Empty(t, copies)
	s, err := seen.Observe(context.WithoutCancel(t.Context()), all[0])
	require.NoError(t, err)
	require.Contains(t, s.Silent, "Nuvla, which manages one, does not answer")
}

// TestAnEdgeThatIsHeldUpIsLeftAtWork: new content waits until it is done, and a removal does not.
func TestAnEdgeThatIsHeldUpIsLeftAtWork(t *testing.T) {
	t.Parallel()
	w := open(t, true)
	j := conformance.Job(w.Places()[0], 1)
	w.server.Hold("one", true)
	w.try(t, j)
	state, _ := w.Do(t, j)
	require.Equal(t, job.Progressing, state)
	other := translated(t, conformance.As(j, job.Replace))
	other.Epoch = 2
	require.ErrorContains(t, w.Orchestrator.Apply(t.Context(), other), "is PENDING; try again")
	w.server.Hold("one", false)
	state, _ = w.Do(t, j)
	require.Equal(t, job.Finished, state)
	state, _ = w.Do(t, conformance.As(j, job.Delete))
	require.Equal(t, job.Finished, state)
	require.Empty(t, w.server.Running("one"))
}
