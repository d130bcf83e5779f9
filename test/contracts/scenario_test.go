package contracts_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// hubShop has one component, whose place its user has fixed.
const hubShop = `name: shop
components:
  - name: web
    type: kubernetes
    targets: {cluster_name: hub, node_name: hub-1, orchestrator: ocm}
    requirements: {cpu: 500m, memory: 256Mi}
    manifests: [{name: web, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {color: red}}}]
`

// freeShop has one component that may run on either node of the hub.
const freeShop = `name: shop
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 500m, memory: 256Mi, architecture: x86_64}
    manifests: [{name: web, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {color: red}}}]
`

// hubStore is one more component for either, whose place its user has fixed.
const hubStore = `  - name: store
    type: kubernetes
    requirements: {cpu: 500m, memory: 256Mi, architecture: x86_64}
    targets: [{cluster_name: hub, node_name: hub-1, orchestrator: ocm}]
    manifests: [{name: store, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: store}, data: {a: b}}}]
`

// group is what the tests read of a JobGroup.
type group struct {
	ID      string `json:"id"`
	Name    string `json:"appName"`
	Desired string `json:"desired"`
	Status  string `json:"status"`
	Jobs    []job  `json:"jobs"`
}

// job is what they read of a job.
type job struct {
	ID       string `json:"id"`
	GroupID  string `json:"job_group_id"`
	OwnerID  string `json:"owner_id"`
	Type     string `json:"type"`
	SubType  string `json:"sub_type"`
	State    string `json:"state"`
	Epoch    int64  `json:"epoch"`
	Cleans   string `json:"cleans"`
	Targets  target `json:"targets"`
	Resource struct {
		UUID         string      `json:"resource_uuid"`
		Name         string      `json:"resource_name"`
		Conditions   []condition `json:"conditions"`
		Remediations []struct {
			Type   string `json:"remediationType"`
			Status string `json:"remediationStatus"`
			Step   int    `json:"remediationStep"`
		} `json:"remediations"`
	} `json:"resource"`
	Manifests []struct {
		YAML string `json:"yamlString"`
	} `json:"manifests"`
}

type target struct {
	Cluster      string `json:"cluster_name"`
	Node         string `json:"node_name"`
	Orchestrator string `json:"orchestrator"`
}

type condition struct {
	Type       string `json:"type"`
	Status     string `json:"status"`
	Reason     string `json:"reason"`
	Generation int64  `json:"observedGeneration"`
}

// submit hands a descriptor in and returns the group as it is once its components have places.
func (w *world) submit(t testing.TB, descriptor string) group {
	t.Helper()
	g := decode[group](t, w.operator.call(t, http.MethodPost, "/jobmanager/groups", descriptor).is(t, http.StatusCreated))
	return w.group(t, g.ID)
}

func (w *world) group(t testing.TB, id string) group {
	t.Helper()
	return decode[group](t, w.viewer.get(t, "/jobmanager/groups/"+id))
}

func (w *world) job(t testing.TB, id string) job {
	t.Helper()
	return decode[job](t, w.viewer.get(t, "/jobmanager/jobs/"+id))
}

// take promotes a job as the agent and returns it as it is then.
func (w *world) take(t testing.TB, as client, agent string, j job) job {
	t.Helper()
	as.send(t, http.MethodPatch, "/jobmanager/jobs/promote/"+j.ID, body{"owner_id": agent}).is(t, http.StatusNoContent)
	return w.job(t, j.ID)
}

// body is a JSON object.
type body = map[string]any

// report is what an agent says of a job as it knows it: the state, and one condition that is true.
func report(agent string, j job, state, condition string) body {
	return body{
		"id": j.ID, "owner_id": agent, "type": j.Type, "state": state, "epoch": j.Epoch,
		"resource": body{
			"resource_uuid": "uid-" + j.ID,
			"conditions":    []body{{"type": condition, "status": "True", "reason": "Reported", "message": ""}},
		},
	}
}

// finish takes the job as the agent and reports it done.
func (w *world) finish(t testing.TB, as client, agent string, j job) job {
	t.Helper()
	taken := w.take(t, as, agent, j)
	as.send(t, http.MethodPut, "/jobmanager/jobs", report(agent, taken, "Finished", "Available")).is(t, http.StatusOK)
	return w.job(t, j.ID)
}

// running submits hubShop and has it run at hub-1.
func (w *world) running(t testing.TB, descriptor string) (group, job) {
	t.Helper()
	g := w.submit(t, descriptor)
	require.Equal(t, "hub", g.Jobs[0].Targets.Cluster)
	j := w.finish(t, w.hub, hubAgent, g.Jobs[0])
	require.Equal(t, "Available", w.group(t, g.ID).Status)
	return g, j
}

// executable is what the agent is offered.
func (w *world) executable(t testing.TB, as client, agent, orchestrator string) []job {
	t.Helper()
	return decode[[]job](t, as.get(t, "/jobmanager/jobs/executable/"+orchestrator+"/"+agent))
}

// lapse lets the lease of a job run out.
func (w *world) lapse(t testing.TB, id string) {
	t.Helper()
	tag, err := w.DB.Exec(t.Context(), `update jobs set lease_until = now() - interval '1 s' where id = $1`, id)
	require.NoError(t, err)
	require.Equal(t, int64(1), tag.RowsAffected())
}
