package inprocess

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
)

// Agent speaks with the job manager as an agent of ICOS does: it asks what is executable, takes jobs and reports. What it
// does with them is the test's business; Work deploys nothing.
type Agent struct {
	ID           string
	Orchestrator string
	// Call sends a request as the named agent. Tests differ in what lies on the way.
	Call func(as, method, path, body string) (status int, answer []byte)

	t testing.TB
}

// NewAgent returns an agent whose requests are carried by call.
func NewAgent(t testing.TB, orchestrator, id string, call func(as, method, path, body string) (int, []byte)) *Agent {
	return &Agent{ID: id, Orchestrator: orchestrator, Call: call, t: t}
}

// As is the agent under another id.
func (a *Agent) As(id string) *Agent {
	other := *a
	other.ID = id
	return &other
}

// AgentToken returns a token that is bound to the agent.
func (i *Issuer) AgentToken(t testing.TB, id string) string {
	t.Helper()
	return i.TokenWith(t, Claims{"sub": id, "roles": []string{string(auth.Agent)}, "icos_agent_id": id})
}

// Agent returns an agent of the orchestrator whose token is bound to id.
func (s *System) Agent(orchestrator, id string) *Agent {
	s.t.Helper()
	token := s.Issuer.AgentToken(s.t, id)
	return NewAgent(s.t, orchestrator, id, func(_, method, path, body string) (int, []byte) {
		r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, bytes.NewReader([]byte(body)))
		require.NoError(s.t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(s.t, err)
		defer func() { _ = resp.Body.Close() }()
		answer, err := io.ReadAll(resp.Body)
		require.NoError(s.t, err)
		return resp.StatusCode, answer
	})
}

// Job is what agents read of a job.
type Job struct {
	ID        string     `json:"id"`
	Type      string     `json:"type"`
	SubType   string     `json:"sub_type"`
	State     string     `json:"state"`
	Owner     string     `json:"owner_id"`
	Cleans    string     `json:"cleans"`
	Epoch     int64      `json:"epoch"`
	Manifests []Manifest `json:"manifests"`
	Targets   Target     `json:"targets"`
	Resource  struct {
		UUID string `json:"resource_uuid"`
		Name string `json:"resource_name"`
	} `json:"resource"`
	Instruction struct {
		Component string `json:"componentName"`
	} `json:"instruction"`
}

// Manifest is an object that a job deploys.
type Manifest struct {
	YAML string `json:"yamlString"`
}

// Target is where.
type Target struct {
	Cluster string `json:"cluster_name"`
	Node    string `json:"node_name"`
}

// Condition is one that is reported to be True, unless Status says otherwise.
type Condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Since   time.Time `json:"lastTransitionTime,omitzero"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
}

// Report is what an agent says of a job.
type Report struct {
	Job       Job
	State     string
	Resource  string // its uuid
	Condition Condition
	NoEpoch   bool       // as agents of ICOS report
	Manifests []Manifest // what it has deployed
	Targets   *Target    // and where
}

// List asks for the jobs that the agent may take.
func (a *Agent) List() (jobs []Job) {
	a.t.Helper()
	status, answer := a.Call(a.ID, http.MethodGet, "/jobmanager/jobs/executable/"+a.Orchestrator+"/"+a.ID, "")
	a.want(http.StatusOK, status, answer, &jobs)
	return jobs
}

// Promote tries to take the job.
func (a *Agent) Promote(id string) (status int, answer []byte) {
	a.t.Helper()
	return a.Call(a.ID, http.MethodPatch, "/jobmanager/jobs/promote/"+id, a.text(map[string]string{"owner_id": a.ID}))
}

// Send sends the report.
func (a *Agent) Send(r Report) (status int, answer []byte) {
	a.t.Helper()
	if r.Condition.Status == "" {
		r.Condition.Status = "True"
	}
	resource := map[string]any{"resource_uuid": r.Resource, "conditions": []Condition{r.Condition}}
	if r.Job.Resource.Name != "" {
		resource["resource_name"] = r.Job.Resource.Name
	}
	body := map[string]any{
		"id": r.Job.ID, "owner_id": a.ID, "type": r.Job.Type, "state": r.State, "resource": resource,
	}
	if r.Job.SubType != "" {
		body["sub_type"] = r.Job.SubType
	}
	if !r.NoEpoch {
		body["epoch"] = r.Job.Epoch
	}
	if r.Manifests != nil {
		body["manifests"] = r.Manifests
	}
	if r.Targets != nil {
		body["targets"] = r.Targets
	}
	return a.Call(a.ID, http.MethodPut, "/jobmanager/jobs", a.text(body))
}

// See sends the condition of a resource between reports.
func (a *Agent) See(job, resource string, c Condition) (status int, answer []byte) {
	a.t.Helper()
	return a.Call(a.ID, http.MethodPut, "/jobmanager/resources/status", a.text(map[string]any{
		"job_id": job, "owner_id": a.ID, "resource_uuid": resource, "conditions": []Condition{c},
	}))
}

// Work takes every job that it may take, reports Progressing with the condition Applied and then Finished with
// Available, and returns how many there were.
func (a *Agent) Work() int {
	a.t.Helper()
	jobs := a.ClaimAll()
	for _, j := range jobs {
		a.Report(j, "Progressing", "Applied", "")
		a.Report(j, "Finished", "Available", "")
	}
	return len(jobs)
}

// ClaimAll promotes every job that the agent may take and returns those it now owns.
func (a *Agent) ClaimAll() (taken []Job) {
	a.t.Helper()
	for _, j := range a.List() {
		status, answer := a.Promote(j.ID)
		a.want(http.StatusNoContent, status, answer, nil)
		var now Job
		status, answer = a.Call(a.ID, http.MethodGet, "/jobmanager/jobs/"+j.ID, "")
		a.want(http.StatusOK, status, answer, &now)
		taken = append(taken, now)
	}
	return taken
}

// Report tells the state of a job that the agent owns, with one condition that is True.
func (a *Agent) Report(j Job, state, condition, message string) {
	a.t.Helper()
	status, answer := a.Send(Report{Job: j, State: state, Resource: "resource-" + j.ID, Condition: Condition{
		Type: condition, Since: time.Now().UTC(), Reason: "Reported", Message: message,
	}})
	a.want(http.StatusOK, status, answer, nil)
}

func (a *Agent) text(body any) string {
	a.t.Helper()
	text, err := json.Marshal(body)
	require.NoError(a.t, err)
	return string(text)
}

func (a *Agent) want(want, status int, answer []byte, into any) {
	a.t.Helper()
	require.Equal(a.t, want, status, "%s", answer)
	if into != nil {
		require.NoError(a.t, json.Unmarshal(answer, into))
	}
}
