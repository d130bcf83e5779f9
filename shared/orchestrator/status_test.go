package orchestrator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
)

// TestVerdict_waitsNotWithoutEnd: no status shows that a StatefulSet exceeds its quota, or that a DaemonSet finds no
// node.
func TestVerdict_waitsNotWithoutEnd(t *testing.T) {
	t.Parallel()
	set := orchestrator.Health{Object: "StatefulSet db", Wanted: 1, Reason: "PodsNotReady", Message: "StatefulSet db: 0 of 1 pods are ready"}
	deployment := orchestrator.Health{Object: "Deployment web", Wanted: 1, Reason: "PodsNotReady", Timed: true}
	config := orchestrator.Health{Object: "ConfigMap settings", Ready: true}
	const long, short = 11 * time.Minute, 9 * time.Minute
	for name, row := range map[string]struct {
		objects   []orchestrator.Health
		available string
		since     time.Duration
		want      job.State
	}{
		"one on its way":                              {[]orchestrator.Health{config, set}, "False", short, job.Progressing},
		"one that should have come":                   {[]orchestrator.Health{config, set}, "False", long, job.Degraded},
		"one that was well until now":                 {[]orchestrator.Health{config, set}, "True", long, job.Progressing},
		"one that nothing was known of until now":     {[]orchestrator.Health{config, set}, "Unknown", long, job.Progressing},
		"a Deployment, whose controller has its time": {[]orchestrator.Health{config, deployment}, "False", long, job.Progressing},
		"both":         {[]orchestrator.Health{deployment, set}, "False", long, job.Degraded},
		"all is ready": {[]orchestrator.Health{config}, "False", long, job.Finished},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := &job.Job{Component: "web", Type: job.Create, Epoch: 7, Target: job.Target{Orchestrator: "ocm", Cluster: "edge", Node: "n1"}}
			j.Type = job.Create
			j.Conditions = []job.Condition{{
				Type: job.ConditionAvailable, Status: row.available, LastTransitionTime: time.Now().Add(-row.since),
			}}
			s := orchestrator.Status{Exists: true, Applied: true, Record: orchestrator.RecordOf(j), Objects: row.objects}
			state, conditions := s.Verdict(j)
			require.Equal(t, row.want, state)
			j.Conditions = conditions
			again, same := s.Verdict(j)
			require.Equal(t, state, again)
			require.Equal(t, conditions, same, "it is said once")
			degraded := j.Condition(job.ConditionDegraded)
			require.Equal(t, row.want == job.Degraded, degraded != nil)
			if degraded != nil {
				require.Equal(t, "ProgressDeadlineExceeded", degraded.Reason)
				require.Contains(t, degraded.Message, "StatefulSet db: 0 of 1 pods are ready, for more than 10 minutes")
			}
		})
	}
}

// TestVerdict_timesNewContentAnew: the time for which the former content was not available does not count.
func TestVerdict_timesNewContentAnew(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]orchestrator.Status{
		"carried out at once":  {Exists: true, Applied: true},
		"handed to an agent":   {Exists: true},
		"to wait for a former": {Exists: true, Leaving: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := &job.Job{Component: "web", Type: job.Create, Epoch: 7, Target: job.Target{Orchestrator: "ocm", Cluster: "edge", Node: "n1"}}
			j.Type, j.State = job.Replace, job.Progressing
			j.Conditions = []job.Condition{{
				Type: job.ConditionAvailable, Status: "False", LastTransitionTime: time.Now().Add(-time.Hour),
			}}
			first.Record = orchestrator.RecordOf(j)
			first.Objects = []orchestrator.Health{{Object: "StatefulSet db", Wanted: 1, Reason: "PodsNotReady"}}
			state, conditions := first.Verdict(j)
			require.Equal(t, job.Progressing, state)
			j.Conditions, j.Applied = conditions, !first.Leaving // as the report makes it
			then := first
			then.Applied, then.Leaving = true, false
			state, conditions = then.Verdict(j)
			require.Equal(t, job.Progressing, state)
			j.Conditions, j.Applied = conditions, true
			j.Condition(job.ConditionAvailable).LastTransitionTime = time.Now().Add(-11 * time.Minute)
			state, _ = then.Verdict(j)
			require.Equal(t, job.Degraded, state)
		})
	}
}
