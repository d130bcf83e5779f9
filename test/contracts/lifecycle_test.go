package contracts_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// standing is the state of a job in the rows of TestStateMachine.
type standing struct{ Type, SubType, State, Owner string }

func (j job) stands() standing { return standing{j.Type, j.SubType, j.State, j.OwnerID} }

const (
	create = "CreateDeployment"
	update = "UpdateDeployment"
	remove = "DeleteDeployment"
)

// TestStateMachine is shared/docs/contracts.md §1.7 row by row, over HTTP: the state before, what happens, and the state
// after.
func TestStateMachine(t *testing.T) {
	t.Parallel()
	type step func(t *testing.T, w *world, g group, j job)
	taken := func(t *testing.T, w *world, _ group, j job) { w.claim(t, w.hub, hubAgent, j) }
	finished := func(t *testing.T, w *world, _ group, j job) { w.finish(t, w.hub, hubAgent, j) }
	reports := func(state, condition string) step {
		return func(t *testing.T, w *world, _ group, j job) {
			j = w.job(t, j.ID)
			w.hub.send(t, http.MethodPut, "/jobmanager/jobs", report(hubAgent, j, state, condition)).is(t, http.StatusOK)
		}
	}
	asks := func(what string) step {
		return func(t *testing.T, w *world, g group, _ job) {
			w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+what+"/"+g.ID, "").is(t, http.StatusOK)
		}
	}
	violates := func(remediation string) step {
		return func(t *testing.T, w *world, g group, _ job) {
			w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", body{
				"policyName": "p", "remediation": remediation, "subject": body{"appInstance": g.ID, "appComponent": "web"},
			}).is(t, http.StatusOK)
		}
	}
	changes := func(t *testing.T, w *world, g group, _ job) {
		w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, strings.Replace(hubShop, "red", "blue", 1)).
			is(t, http.StatusOK)
	}
	for name, row := range map[string]struct {
		steps []step
		want  standing
		desc  string
	}{
		"placed, it waits for its agent": {nil, standing{create, "", "Created", ""}, "Deploying"},
		"promoted, it is its agent's": {
			[]step{taken}, standing{create, "", "Progressing", hubAgent}, "Deploying",
		},
		"promoted twice, nothing more": {
			[]step{taken, taken}, standing{create, "", "Progressing", hubAgent}, "Deploying",
		},
		"reported in progress": {
			[]step{taken, reports("Progressing", "Applied")}, standing{create, "", "Progressing", hubAgent}, "Deploying",
		},
		"reported finished": {
			[]step{finished}, standing{create, "", "Finished", hubAgent}, "Available",
		},
		"reported degraded": {
			[]step{taken, reports("Degraded", "Degraded")}, standing{create, "", "Degraded", hubAgent}, "Degraded",
		},
		"recovered": {
			[]step{taken, reports("Degraded", "Degraded"), reports("Finished", "Available")},
			standing{create, "", "Finished", hubAgent},
			"Available",
		},
		"failed after it ran": {
			[]step{finished, reports("Degraded", "Degraded")}, standing{create, "", "Degraded", hubAgent}, "Degraded",
		},
		"to be scaled, it is its owner's update": {
			[]step{finished, violates("scale-up")}, standing{update, "scale-up", "Created", hubAgent}, "Deploying",
		},
		"scaled": {
			[]step{finished, violates("scale-in"), finished}, standing{update, "scale-in", "Finished", hubAgent}, "Available",
		},
		"to be patched": {
			[]step{finished, violates("patch")}, standing{update, "patch", "Created", hubAgent}, "Deploying",
		},
		"to be secured": {
			[]step{finished, violates("secure")}, standing{update, "secure", "Created", hubAgent}, "Deploying",
		},
		"to be replaced by a policy": {
			[]step{finished, violates("replace")}, standing{update, "replace", "Created", hubAgent}, "Deploying",
		},
		"violated without remediation": {
			[]step{finished, violates("none")}, standing{create, "", "Finished", hubAgent}, "Available",
		},
		"scaled twice, one after the other": {
			[]step{finished, violates("scale-up"), finished, violates("scale-down")},
			standing{update, "scale-down", "Created", hubAgent},
			"Deploying",
		},
		"its content changed while it runs": {
			[]step{finished, changes}, standing{update, "replace", "Created", hubAgent}, "Deploying",
		},
		"replaced": {
			[]step{finished, changes, finished}, standing{update, "replace", "Finished", hubAgent}, "Available",
		},
		"its content changed before it is taken": {[]step{changes}, standing{create, "", "Created", ""}, "Deploying"},
		"its content changed before it was made": {
			[]step{taken, changes}, standing{create, "", "Created", hubAgent}, "Deploying",
		},
		"stopped before it was taken": {[]step{asks("stop")}, standing{create, "", "Finished", ""}, "Stopped"},
		"undeployed, the older name of stopped": {
			[]step{asks("undeploy")}, standing{create, "", "Finished", ""}, "Stopped",
		},
		"stopped while it runs, its agent removes": {
			[]step{finished, asks("stop")}, standing{remove, "", "Created", hubAgent}, "Stopping",
		},
		"stopped in progress": {
			[]step{taken, asks("stop")}, standing{remove, "", "Created", hubAgent}, "Stopping",
		},
		"stopped twice": {
			[]step{finished, asks("stop"), asks("undeploy")}, standing{remove, "", "Created", hubAgent}, "Stopping",
		},
		"stopped in the middle of a remediation": {
			[]step{finished, violates("scale-up"), asks("stop")}, standing{remove, "", "Created", hubAgent}, "Stopping",
		},
		"removed, it is nobody's": {
			[]step{finished, asks("stop"), finished}, standing{remove, "", "Finished", ""}, "Stopped",
		},
		"started again, it is placed anew": {
			[]step{finished, asks("stop"), finished, asks("start")}, standing{create, "", "Created", ""}, "Deploying",
		},
		"started again and running": {
			[]step{finished, asks("stop"), finished, asks("start"), finished},
			standing{create, "", "Finished", hubAgent},
			"Available",
		},
		"started though it runs": {
			[]step{finished, asks("start")}, standing{create, "", "Finished", hubAgent}, "Available",
		},
		"started after it was never taken": {
			[]step{asks("stop"), asks("start")}, standing{create, "", "Created", ""}, "Deploying",
		},
		"started before its removal is done": {
			[]step{finished, asks("stop"), asks("start")}, standing{create, "", "Created", ""}, "Deploying",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := w.submit(t, hubShop)
			for _, s := range row.steps {
				s(t, w, g, g.Jobs[0])
			}
			now := w.job(t, g.Jobs[0].ID)
			require.Equal(t, row.want, now.stands())
			require.Equal(t, row.desc, w.group(t, g.ID).Status)
			w.legal(t)
		})
	}
}

// legal requires that every change of state in the history is allowed by the contract (shared/docs/contracts.md §1.7), and
// that each entry has its cause.
func (w *world) legal(t testing.TB) {
	t.Helper()
	known := map[string]bool{}
	for _, move := range []string{
		"submitted: >Created", "cleanup: >Created", "placed:Created>Created", "waiting:Created>Created", "promoted:Created>Progressing",
		"takenover:Progressing>Progressing", "takenover:Degraded>Progressing", "adopted:Created>Progressing",
		"adopted:Progressing>Progressing", "adopted:Degraded>Progressing", "promoted:Degraded>Progressing",
		"progressing:Progressing>Progressing", "finished:Progressing>Finished",
		"finished:Degraded>Finished", "finished:Finished>Finished",
		"degraded:Progressing>Degraded", "degraded:Finished>Degraded",
		"degraded:Degraded>Degraded", "remediated:Finished>Created", "remediated:Degraded>Created", "returned:Progressing>Created",
		"replaced:Created>Created", "replaced:Progressing>Created", "replaced:Finished>Created", "replaced:Degraded>Created",
		"displaced:Created>Created", "displaced:Progressing>Created",
		"displaced:Finished>Created", "displaced:Degraded>Created",
		"stopped:Created>Created", "stopped:Progressing>Created", "stopped:Finished>Created", "stopped:Degraded>Created",
		"cancelled:Created>Finished", "restarted:Created>Created",
		"restarted:Progressing>Created", "restarted:Finished>Created",
		"restarted:Degraded>Created", "observed:Finished>Finished",
	} {
		known[strings.ReplaceAll(move, " ", "")] = true
	}
	type entry struct {
		Event, Cause, TraceID, FromState, ToState string
		JobID                                     *string
	}
	for _, e := range decode[[]entry](t, w.viewer.get(t, "/jobmanager/history?limit=1000")) {
		if e.Event != "topology.changed" { // stored by the test itself
			require.NotEmpty(t, e.Cause, "%+v", e)
			require.NotEmpty(t, e.TraceID, "%+v", e)
		}
		if what, ok := strings.CutPrefix(e.Event, "job."); ok && (e.FromState != e.ToState || e.FromState == "") {
			require.True(t, known[what+":"+e.FromState+">"+e.ToState], "%s from %q to %q", e.Event, e.FromState, e.ToState)
		}
	}
}

// TestReallocation: the component moves; the former owner is fenced, cleans up, and reports that at the end.
func TestReallocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j := w.running(t, freeShop)
	old := j.Targets
	w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", body{
		"policyName": "p", "remediation": "reallocate", "subject": body{"resourceId": j.Resource.UUID},
	}).is(t, http.StatusOK)

	moved := w.job(t, j.ID)
	require.Equal(t, standing{create, "", "Created", ""}, moved.stands(), "its owner is cleared")
	require.NotEmpty(t, moved.Targets.Node)
	require.NotEqual(t, old, moved.Targets, "it was placed anew, elsewhere")
	require.Greater(t, moved.Epoch, j.Epoch)
	require.Empty(t, moved.Resource.UUID)

	w.unchanged(t, func() {
		w.hub.send(t, http.MethodPut, "/jobmanager/jobs", report(hubAgent, j, "Degraded", "Degraded")).
			refused(t, http.StatusConflict)
		w.hub.send(t, http.MethodPut, "/jobmanager/status", body{"job_id": j.ID, "resource_uuid": j.Resource.UUID, "epoch": j.Epoch}).
			refused(t, http.StatusConflict)
	})

	var cleanup, next job
	for _, offered := range w.executable(t, w.hub, hubAgent, "ocm") {
		if offered.Cleans != "" {
			cleanup = offered
		} else {
			next = offered
		}
	}
	require.Equal(t, j.ID, cleanup.Cleans)
	require.Equal(t, standing{remove, "reallocate", "Created", hubAgent}, cleanup.stands())
	require.Equal(t, old, cleanup.Targets)
	require.Equal(t, j.ID, next.ID)
	w.finish(t, w.hub, hubAgent, cleanup)
	w.finish(t, w.hub, hubAgent, next)
	require.Equal(t, "Available", w.group(t, g.ID).Status)
	require.Empty(t, w.executable(t, w.hub, hubAgent, "ocm"))
	w.legal(t)
}

// TestDelete_ofWhatNobodyTends: the request returns when it is repeated; the removal waits for the agent.
func TestDelete_ofWhatNobodyTends(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(*testing.T, *world){
		"an agent that never came": func(t *testing.T, w *world) {
			t.Helper()
			_, err := w.DB.Exec(t.Context(), "update jobs set updated_at = now() - interval '1 h'")
			require.NoError(t, err)
		},
		"an agent that went": func(t *testing.T, w *world) {
			t.Helper()
			removal := w.claim(t, w.hub, hubAgent, w.executable(t, w.hub, hubAgent, "ocm")[0])
			w.lapse(t, removal.ID)
		},
	} {
		for _, again := range []string{"", "?stop=true"} {
			t.Run(name+again, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				g, j := w.running(t, hubShop)
				path := "/jobmanager/groups/" + g.ID
				w.operator.call(t, http.MethodDelete, path+"?stop=true", "").is(t, http.StatusAccepted)
				w.operator.call(t, http.MethodDelete, path+"?stop=true", "").is(t, http.StatusAccepted)
				away(t, w)
				w.operator.call(t, http.MethodDelete, path+again, "").is(t, http.StatusOK)
				w.viewer.call(t, http.MethodGet, path, "").is(t, http.StatusNotFound)
				require.Equal(t, "DeleteDeployment", w.job(t, j.ID).Type, "what runs is to be removed yet")
			})
		}
	}
}
