package contracts_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// hubShop has one component with a user-fixed target.
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

// hubStore has one more component, with a user-fixed target, for either application.
const hubStore = `  - name: store
    type: kubernetes
    requirements: {cpu: 500m, memory: 256Mi, architecture: x86_64}
    targets: [{cluster_name: hub, node_name: hub-1, orchestrator: ocm}]
    manifests: [{name: store, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: store}, data: {a: b}}}]
`

// group is the fields of a JobGroup that the tests read.
type group struct {
	ID      string `json:"id"`
	Name    string `json:"appName"`
	Desired string `json:"desired"`
	Status  string `json:"status"`
	Jobs    []job  `json:"jobs"`
}

// job is the fields of a job that the tests read.
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

// submit submits a descriptor and returns the group after its components were placed.
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

// claim promotes a job as the agent and returns the job afterwards.
func (w *world) claim(t testing.TB, as client, agent string, j job) job {
	t.Helper()
	as.send(t, http.MethodPatch, "/jobmanager/jobs/promote/"+j.ID, body{"owner_id": agent}).is(t, http.StatusNoContent)
	return w.job(t, j.ID)
}

// body is a JSON object.
type body = map[string]any

// report is an agent's report on a job: the state, and one condition that is true.
func report(agent string, j job, state, condition string) body {
	return body{
		"id": j.ID, "owner_id": agent, "type": j.Type, "state": state, "epoch": j.Epoch,
		"resource": body{
			"resource_uuid": "uid-" + j.ID,
			"conditions":    []body{{"type": condition, "status": "True", "reason": "Reported", "message": ""}},
		},
	}
}

// finish takes the job as the agent and reports it as done.
func (w *world) finish(t testing.TB, as client, agent string, j job) job {
	t.Helper()
	taken := w.claim(t, as, agent, j)
	as.send(t, http.MethodPut, "/jobmanager/jobs", report(agent, taken, "Finished", "Available")).is(t, http.StatusOK)
	return w.job(t, j.ID)
}

// running submits hubShop and makes it run on hub-1.
func (w *world) running(t testing.TB, descriptor string) (group, job) {
	t.Helper()
	g := w.submit(t, descriptor)
	require.Equal(t, "hub", g.Jobs[0].Targets.Cluster)
	j := w.finish(t, w.hub, hubAgent, g.Jobs[0])
	require.Equal(t, "Available", w.group(t, g.ID).Status)
	return g, j
}

// executable returns the jobs that the agent is offered.
func (w *world) executable(t testing.TB, as client, agent, orchestrator string) []job {
	t.Helper()
	return decode[[]job](t, as.get(t, "/jobmanager/jobs/executable/"+orchestrator+"/"+agent))
}

// lapse makes the lease of a job expire.
func (w *world) lapse(t testing.TB, id string) {
	t.Helper()
	tag, err := w.DB.Exec(t.Context(), `update jobs set lease_until = now() - interval '1 s' where id = $1`, id)
	require.NoError(t, err)
	require.Equal(t, int64(1), tag.RowsAffected())
}
