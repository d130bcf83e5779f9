package fleet

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/icoswire"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/conformance"
)

// polled is the fleet as a world of the suite: its agents get a job by polling the API.
type polled struct {
	manager *manager
	fleet   *Fleet
}

func (p *polled) Places() []job.Target {
	return []job.Target{
		{Orchestrator: "ocm", Cluster: "edge", Node: "edge-1"},
		{Orchestrator: "ocm", Cluster: "edge", Node: "edge-2"},
		{Orchestrator: "ocm", Cluster: "cloud", Node: "cloud-1"},
	}
}

func (p *polled) Do(t *testing.T, j *job.Job) (job.State, []job.Condition) {
	t.Helper()
	text, err := json.Marshal(icoswire.JobOf(j)) // as the API answers it
	require.NoError(t, err)
	given := &Job{}
	require.NoError(t, json.Unmarshal(text, given))
	given.State = "Created"
	if j.Type != job.Create {
		given.OwnerID = p.fleet.agents[j.Cluster].cluster.AgentID
	}
	p.manager.mu.Lock()
	p.manager.jobs[given.ID] = given
	p.manager.mu.Unlock()
	poll(t, p.fleet, j.Cluster)
	p.manager.mu.Lock()
	defer p.manager.mu.Unlock()
	text, err = json.Marshal(given.Resource.Conditions)
	require.NoError(t, err)
	var conditions []job.Condition
	require.NoError(t, json.Unmarshal(text, &conditions))
	return job.State(given.State), conditions
}

func (p *polled) Running(_ *testing.T, cluster string, j *job.Job) *conformance.Running {
	p.fleet.mu.Lock()
	defer p.fleet.mu.Unlock()
	c := p.fleet.state.Clusters[cluster].Copies[orchestrator.Subject(j).String()]
	if c == nil || c.Removed {
		return nil
	}
	w := c.Workloads[slices.IndexFunc(c.Workloads, func(w Workload) bool { return w.Name == "web" })]
	return &conformance.Running{
		Epoch: c.Epoch, Node: c.Node, Replicas: int64(w.Replicas), CPUMilli: w.Containers[0].CPUMilli,
	}
}

func (p *polled) Cut(t *testing.T, _ string, _ bool) {
	t.Helper()
	require.Fail(t, "an agent that is cut off says nothing")
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Can{}, func(t *testing.T) conformance.World {
		t.Helper()
		m := newManager()
		return &polled{m, newFleet(t, m)}
	})
}
