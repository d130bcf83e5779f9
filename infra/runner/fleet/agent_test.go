package fleet

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
)

func discard(context.Context, []prometheus.Sample) error { return nil }

// copies lists the copies on a cluster: job id -> epoch.
func copies(f *Fleet, cluster string) map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := map[string]int64{}
	for id, c := range f.state.Clusters[cluster].Copies {
		if !c.Removed {
			found[id] = c.Epoch
		}
	}
	return found
}

func poll(t *testing.T, f *Fleet, cluster string) {
	t.Helper()
	require.NoError(t, f.Poll(t.Context(), cluster))
}

func TestAgentDeploysAJob(t *testing.T) {
	t.Parallel()
	m := newManager()
	f := newFleet(t, m)
	j := m.put(typeCreate, "edge", "edge-1", 3)
	poll(t, f, "edge")

	require.Equal(t, enum(stateFinished), m.state(j))
	require.Equal(t, map[string]int64{j.ID: 3}, copies(f, "edge"))
	var states []string
	for _, r := range m.reports {
		states = append(states, r.State+" "+r.Resource.Conditions[len(r.Resource.Conditions)-1].Type)
		require.Equal(t, int64(3), r.Epoch, "the epoch is echoed")
		require.Equal(t, "agent-ocm-2", r.OwnerID)
		require.Equal(t, j.ID, r.Resource.JobID)
		require.NotEmpty(t, r.Resource.UUID)
		require.True(t, strings.HasPrefix(r.Resource.Name, "web-"))
	}
	require.Equal(t, []string{"Progressing Progressing", "Progressing Applied", "Finished Available"}, states)
	last := m.reports[2].Resource
	require.Equal(t, "True", last.Conditions[2].Status)
	require.Equal(t, "2 of 2 pods run on edge-1", last.Conditions[2].Message)

	m.ask(j, typeCreate, "")
	poll(t, f, "edge")
	require.Len(t, copies(f, "edge"), 1, "a repeat changes the copy, it makes no second one")
	require.Equal(t, last.UUID, m.reports[len(m.reports)-1].Resource.UUID)
}

func TestAgentLeavesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		prepare func(*manager) *Job
		state   enum
	}{
		"a job of another cluster of its orchestrator": {
			func(m *manager) *Job { return m.put(typeCreate, "cloud", "cloud-1", 1) }, "Created",
		},
		"a job that another agent won in between": {func(m *manager) *Job {
			j := m.put(typeCreate, "edge", "edge-1", 1)
			m.refuse("PATCH", http.StatusConflict)
			return j
		}, "Created"},
		"a job that was removed in between": {func(m *manager) *Job {
			j := m.put(typeCreate, "edge", "edge-1", 1)
			m.refuse("PATCH", http.StatusNotFound)
			return j
		}, "Created"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newManager()
			f := newFleet(t, m)
			j := row.prepare(m)
			poll(t, f, "edge")
			require.Equal(t, row.state, m.state(j))
			require.Empty(t, copies(f, "edge"))
			require.Empty(t, m.reports)
			require.Empty(t, f.agents["edge"].tasks())
		})
	}
}

// TestChangeBetweenListAndPromote: the agent must not carry out the job as it was listed.
func TestChangeBetweenListAndPromote(t *testing.T) {
	t.Parallel()
	m := newManager()
	f := newFleet(t, m)
	j := m.put(typeCreate, "edge", "edge-1", 1)
	m.hook = func(call string) {
		if strings.HasPrefix(call, "PATCH") {
			m.mu.Lock()
			defer m.mu.Unlock()
			j.Instruction.Contents = []Content{{Name: "web", YAML: strings.Replace(webYAML, "replicas: 2", "replicas: 3", 1)}}
		}
	}
	poll(t, f, "edge")
	require.Equal(t, enum(stateFinished), m.state(j))
	require.Equal(t, 3, f.agents["edge"].copy(j.ID).Workloads[0].Replicas)
}

// TestChangeBetweenPromoteAndRead releases the job; the agent takes it again.
func TestChangeBetweenPromoteAndRead(t *testing.T) {
	t.Parallel()
	m := newManager()
	f := newFleet(t, m)
	j := m.put(typeCreate, "edge", "edge-1", 1)
	m.hook = func(call string) {
		if call == "GET /jobmanager/jobs/"+j.ID {
			m.ask(j, typeCreate, "")
		}
	}
	poll(t, f, "edge")
	require.Empty(t, m.reports, "it is not the agent's to carry out before it is promoted again")
	require.Empty(t, f.agents["edge"].tasks())
	m.hook = nil
	poll(t, f, "edge")
	require.Equal(t, enum(stateFinished), m.state(j))
}

func TestTargetMayNameClusterAgentOrKey(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"edge", "agent-ocm-2"} {
		m := newManager()
		f := newFleet(t, m)
		j := m.put(typeCreate, name, "edge-2", 1)
		poll(t, f, "edge")
		require.Equal(t, enum(stateFinished), m.state(j), name)
	}
}

func TestFencedReportDropsTheCopy(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]int{"before it was made": 0, "after it was made": 1, "at the end": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newManager()
			f := newFleet(t, m)
			j := m.put(typeCreate, "edge", "edge-1", 1)
			seen := 0
			m.hook = func(call string) {
				if call == "PUT /jobmanager/jobs" {
					if seen == at { // a new decision for another cluster overtakes the work
						m.place(j, "cloud", "cloud-1", 2)
					}
					seen++
				}
			}
			poll(t, f, "edge")
			require.Empty(t, copies(f, "edge"))
			require.Empty(t, f.agents["edge"].tasks())
			require.Len(t, m.reports, at)
		})
	}
}

func TestNewerCopyOnTheSameClusterStays(t *testing.T) {
	t.Parallel()
	m := newManager()
	f := newFleet(t, m)
	j := m.put(typeCreate, "edge", "edge-1", 3)
	poll(t, f, "edge")

	m.place(j, "edge", "edge-2", 4)
	old := m.clean(j, "agent-ocm-2", "edge", 3)
	poll(t, f, "edge")
	require.Equal(t, map[string]int64{j.ID: 4}, copies(f, "edge"), "the clean-up of epoch 3 leaves epoch 4 alone")
	require.Equal(t, enum(stateFinished), m.state(old), "and is done, since what it was to remove is gone")
	require.Equal(t, "edge-2", f.agents["edge"].copy(j.ID).Node)

	m.mu.Lock()
	m.jobs = map[string]*Job{j.ID: j}
	m.mu.Unlock()
	stale := *j
	stale.Epoch = 3
	f.mu.Lock()
	admitted := f.state.Clusters["edge"].admits(&stale)
	f.mu.Unlock()
	require.False(t, admitted, "nor may a late creation of epoch 3 overwrite it")
}

func TestDeleteIsIdempotent(t *testing.T) {
	t.Parallel()
	m := newManager()
	f := newFleet(t, m)
	j := m.put(typeCreate, "harbour", "quay-1", 1)
	poll(t, f, "harbour")
	require.Len(t, copies(f, "harbour"), 1)
	for range 3 {
		m.ask(j, typeDelete, "")
		poll(t, f, "harbour")
		require.Equal(t, enum(stateFinished), m.state(j))
		require.Empty(t, copies(f, "harbour"))
	}
	late := *j
	late.Type, late.Epoch = typeCreate, 0
	f.mu.Lock()
	admitted := f.state.Clusters["harbour"].admits(&late)
	f.mu.Unlock()
	require.False(t, admitted, "a creation older than the removal brings nothing back")
}

func TestHealAfterCutDoesNotBringBackOldDecisions(t *testing.T) {
	t.Parallel()
	m := newManager()
	f := newFleet(t, m)
	moved := m.put(typeCreate, "edge", "edge-1", 1)
	same := m.put(typeCreate, "edge", "edge-2", 1)
	gone := m.put(typeCreate, "edge", "edge-4", 1)
	poll(t, f, "edge")
	require.Len(t, copies(f, "edge"), 3)

	require.NoError(t, f.Cut("edge"))
	calls := len(m.calls)
	require.ErrorIs(t, f.Poll(t.Context(), "edge"), errAsleep)
	require.ErrorIs(t, f.Sync(t.Context(), "edge"), errAsleep)
	require.Len(t, m.calls, calls, "a cluster that is cut off asks nothing")
	m.place(moved, "cloud", "cloud-1", 2)
	cleanup := m.clean(moved, "agent-ocm-2", "edge", 1)
	m.mu.Lock()
	delete(m.jobs, gone.ID)
	m.mu.Unlock()
	poll(t, f, "cloud")
	require.Equal(t, map[string]int64{moved.ID: 2}, copies(f, "cloud"))

	require.NoError(t, f.Heal("edge"))
	require.Len(t, copies(f, "edge"), 3, "it comes back with what it was running")
	require.NoError(t, f.Sync(t.Context(), "edge"))
	require.Equal(t, map[string]int64{same.ID: 1}, copies(f, "edge"), "and learns what has moved on or is no more")
	poll(t, f, "edge")
	require.Equal(t, enum(stateFinished), m.state(cleanup))
	require.Equal(t, map[string]int64{moved.ID: 2}, copies(f, "cloud"))
	require.Equal(t, "agent-ocm-1", moved.OwnerID)
}

func TestCutInTheMiddleOfAJob(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		moves bool
		want  int
	}{
		"is gone on with after heal":                       {false, 1},
		"is given up after heal when the job has moved on": {true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newManager()
			f := newFleet(t, m)
			j := m.put(typeCreate, "edge", "edge-1", 1)
			m.hook = func(call string) {
				if strings.HasPrefix(call, "PATCH") {
					require.NoError(t, f.Cut("edge"))
				}
			}
			require.ErrorIs(t, f.Poll(t.Context(), "edge"), errAsleep)
			m.hook = nil
			require.Len(t, f.agents["edge"].tasks(), 1)
			if row.moves {
				m.place(j, "cloud", "cloud-1", 2)
			}
			require.NoError(t, f.Heal("edge"))
			poll(t, f, "edge")
			require.Empty(t, f.agents["edge"].tasks())
			require.Len(t, copies(f, "edge"), row.want)
			if row.moves {
				require.Equal(t, enum("Created"), m.state(j), "it did not take what was given to another")
			}
		})
	}
}

// TestRestartGoesOnWhereItStopped stops the agent at each of its requests in turn, like a kill, and restarts it from
// its file.
func TestRestartGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		call string
		skip int
	}{
		{"PATCH", 0},
		{"PUT /jobmanager/jobs", 0},
		{"PUT /jobmanager/jobs", 1},
		{"PUT /jobmanager/jobs", 2},
	} {
		for _, heard := range []bool{false, true} {
			m := newManager()
			f := newFleet(t, m)
			j := m.put(typeCreate, "edge", "edge-1", 1)
			poll(t, f, "edge")
			m.ask(j, typeUpdate, scaleUp)
			dying := &dying{manager: m, call: row.call, skip: row.skip, heard: heard}
			killed := newFleet(t, m, func(o *Options) {
				o.File = f.options.File
				o.Client = func(string) *http.Client { return &http.Client{Transport: dying} }
			})
			require.Error(t, killed.Poll(t.Context(), "edge"))

			again := newFleet(t, m, func(o *Options) { o.File = f.options.File })
			poll(t, again, "edge")
			require.Equal(t, enum(stateFinished), m.state(j), "%+v heard=%v", row, heard)
			require.Equal(t, 3, again.agents["edge"].copy(j.ID).Workloads[0].Replicas,
				"one replica more, not two: %+v heard=%v", row, heard)
			require.Empty(t, again.agents["edge"].tasks())
		}
	}
}

// dying fails one call and all later ones, like for a process that is killed at that point; heard says whether that
// call still reached the manager.
type dying struct {
	manager *manager
	call    string
	skip    int
	heard   bool
	dead    bool
}

func (d *dying) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.dead {
		return nil, http.ErrServerClosed
	}
	if strings.HasPrefix(r.Method+" "+r.URL.Path, d.call) {
		if d.skip--; d.skip < 0 {
			d.dead = true
			if d.heard {
				_, _ = d.manager.RoundTrip(r)
			}
			return nil, http.ErrServerClosed
		}
	}
	return d.manager.RoundTrip(r)
}

func TestRemediations(t *testing.T) {
	t.Parallel()
	m := newManager()
	f := newFleet(t, m)
	j := m.put(typeCreate, "cloud", "cloud-1", 1)
	poll(t, f, "cloud")
	for _, step := range []struct {
		typ, sub enum
		replicas int
		cpuMilli int64
		memory   int64
	}{
		{typeUpdate, scaleUp, 3, 500, 256 << 20},
		{typeUpdate, secure, 3, 500, 256 << 20}, // it acts inside a container
		{typeUpdate, scaleOut, 3, 1500, 1256 << 20},
		{typeUpdate, scaleIn, 3, 500, 256 << 20},
		{typeUpdate, scaleIn, 3, 500, 256 << 20}, // less than a step is left
		{typeUpdate, scaleDown, 2, 500, 256 << 20},
		{typeUpdate, scaleDown, 1, 500, 256 << 20},
		{typeUpdate, scaleDown, 1, 500, 256 << 20}, // nothing is scaled away
		{typeReplace, "", 2, 500, 256 << 20},
		{typeUpdate, scaleUp, 3, 500, 256 << 20},
		{typeUpdate, patch, 2, 500, 256 << 20},
	} {
		m.ask(j, step.typ, step.sub)
		poll(t, f, "cloud")
		require.Equal(t, enum(stateFinished), m.state(j))
		w := f.agents["cloud"].copy(j.ID).Workloads[0]
		got := []int64{int64(w.Replicas), w.Containers[0].CPUMilli, w.Containers[0].MemoryBytes}
		require.Equal(t, []int64{int64(step.replicas), step.cpuMilli, step.memory}, got, "%s %s", step.typ, step.sub)
	}
	m.ask(j, typeUpdate, reallocate)
	poll(t, f, "cloud")
	require.Empty(t, copies(f, "cloud"))
}

func TestWhatCannotRunIsDegraded(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		node    string
		prepare func(*testing.T, *Fleet)
		reason  string
	}{
		"on a drained node": {"edge-1", func(t *testing.T, f *Fleet) {
			require.NoError(t, f.Drain("edge-1"))
		}, "NodeDrained"},
		"on a node that is not there": {"edge-9", func(*testing.T, *Fleet) {}, "NodeNotFound"},
		"on a node that has become too small": {"edge-1", func(t *testing.T, f *Fleet) {
			require.NoError(t, f.Set("edge-1", map[string]string{"ram": "300Mi"}))
		}, "InsufficientResources"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newManager()
			f := newFleet(t, m)
			row.prepare(t, f)
			j := m.put(typeCreate, "edge", row.node, 1)
			poll(t, f, "edge")
			require.Equal(t, enum(stateDegraded), m.state(j))
			available := m.reports[len(m.reports)-1].Resource.Conditions[2]
			require.Equal(t, "False", available.Status)
			require.Equal(t, row.reason, available.Reason)
		})
	}
}

func TestChangesAreReportedAtOnceAndAllIsReportedInSync(t *testing.T) {
	t.Parallel()
	m := newManager()
	f := newFleet(t, m)
	j := m.put(typeCreate, "edge", "edge-1", 5)
	poll(t, f, "edge")
	poll(t, f, "edge")
	require.Empty(t, m.stati, "nothing has changed since the report on the job")

	require.NoError(t, f.Drain("edge-1"))
	poll(t, f, "edge")
	require.Len(t, m.stati, 1)
	require.Equal(t, int64(5), m.stati[0].Epoch)
	require.Equal(t, j.ID, m.stati[0].JobID)
	require.Equal(t, "False", m.stati[0].Conditions[2].Status)
	poll(t, f, "edge")
	require.Len(t, m.stati, 1, "once is enough")

	require.NoError(t, f.Sync(t.Context(), "edge"))
	require.Len(t, m.stati, 2, "and in each sync, which renews the lease")
	require.NoError(t, f.Restore("edge-1"))
	poll(t, f, "edge")
	require.Equal(t, "True", m.stati[2].Conditions[2].Status)

	m.ask(j, typeUpdate, scaleUp) // refused until then, since nothing runs by that decision yet
	require.NoError(t, f.Sync(t.Context(), "edge"))
	require.Len(t, copies(f, "edge"), 1, "a refusal for that reason costs no copy")
}

func TestJobManagerAway(t *testing.T) {
	t.Parallel()
	m := newManager()
	f := newFleet(t, m)
	j := m.put(typeCreate, "edge", "edge-1", 1)
	m.refuse("PUT", http.StatusServiceUnavailable)
	require.ErrorContains(t, f.Poll(t.Context(), "edge"), "503")
	m.refuse("PUT", 0)
	poll(t, f, "edge")
	require.Equal(t, enum(stateFinished), m.state(j), "what was taken is gone on with")
}

func TestOlderJobManagersAreUnderstood(t *testing.T) {
	t.Parallel()
	m := newManager()
	old := `{"ID":"0f7e1c9a-0000-4000-8000-00000000000a","type":5,"state":1,"targets":[{"cluster_name":"edge",
	  "node_name":"edge-1","orchestrator":"ocm"}],"manifests":[{"yamlString":"kind: Pod\nmetadata: {name: p}\nspec:
	  {containers: [{name: c}]}"}],"resource":{"resource_name":"front"},"job_group_name":"shop"}`
	old = strings.NewReplacer("\n", "", "\t", "").Replace(old)
	var reported *http.Request
	f := newFleet(t, m, func(o *Options) {
		o.Client = func(string) *http.Client {
			return &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				code, body := http.StatusOK, "{}"
				switch r.Method {
				case http.MethodGet:
					if body = strings.Replace(old, `"state":1`, `"state":2,"owner_id":"agent-ocm-2"`, 1); strings.Contains(r.URL.Path, "executable") {
						body = "[" + old + "]"
					}
				case http.MethodPatch:
					code, body = http.StatusNoContent, ""
				default:
					reported = r
				}
				return &http.Response{StatusCode: code, Body: readCloser{strings.NewReader(body)}}, nil
			})}
		}
	})
	poll(t, f, "edge")
	require.NotNil(t, reported)
	c := f.agents["edge"].copy("0f7e1c9a-0000-4000-8000-00000000000a")
	require.Equal(t, "front", c.Component)
	require.Equal(t, "p", c.Workloads[0].Name)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

func TestRunTakesItsTimeAndStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const delay = 700 * time.Millisecond
		m, s := newManager(), &store{}
		f := newFleet(t, m, func(o *Options) {
			o.Delay, o.Now, o.Append = delay, time.Now, s.append
		})
		j := m.put(typeCreate, "edge", "edge-1", 1)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()

		synctest.Wait()
		require.Len(t, s.all(), 1, "telemetry flows from the first moment")
		require.Empty(t, m.heard())
		time.Sleep(301 * time.Millisecond)
		synctest.Wait()
		require.Len(t, m.heard(), 1)
		require.Equal(t, stateProgressing, m.heard()[0].State)
		time.Sleep(400 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, enum(stateFinished), m.state(j))
		time.Sleep(syncEvery + DefaultPoll)
		synctest.Wait()
		require.NotEmpty(t, m.statuses(), "the lease is renewed")
		require.Len(t, s.all(), 1+int((syncEvery+DefaultPoll+delay)/DefaultEvery))

		cancel()
		require.NoError(t, <-ended)
	})
}
