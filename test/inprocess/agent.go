package inprocess

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
)

// Agent carries out jobs over the public API as an agent of ICOS does: it asks what is executable, promotes, deploys
// nothing and reports.
type Agent struct {
	sys          *System
	orchestrator string
	id           string
	token        string
}

// Agent returns an agent of the orchestrator whose token is bound to id.
func (s *System) Agent(orchestrator, id string) *Agent {
	s.t.Helper()
	token := s.Issuer.TokenWith(s.t, Claims{"sub": id, "roles": []string{string(auth.Agent)}, "icos_agent_id": id})
	return &Agent{sys: s, orchestrator: orchestrator, id: id, token: token}
}

// Job is what the agent reads of a job.
type Job struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	State string `json:"state"`
	Epoch int64  `json:"epoch"`
}

// Work takes every job that it may take, reports Progressing with the condition Applied and then Finished with
// Available, and returns how many there were.
func (a *Agent) Work() int {
	a.sys.t.Helper()
	jobs := a.ClaimAll()
	for _, j := range jobs {
		a.Report(j, "Progressing", "Applied", "")
		a.Report(j, "Finished", "Available", "")
	}
	return len(jobs)
}

// ClaimAll promotes every job that the agent may take and returns those it now owns.
func (a *Agent) ClaimAll() []Job {
	a.sys.t.Helper()
	var jobs, taken []Job
	a.call(http.MethodGet, "/jobmanager/jobs/executable/"+a.orchestrator+"/"+a.id, nil, http.StatusOK, &jobs)
	for _, j := range jobs {
		me := map[string]string{"owner_id": a.id}
		a.call(http.MethodPatch, "/jobmanager/jobs/promote/"+j.ID, me, http.StatusNoContent, nil)
		var now Job
		a.call(http.MethodGet, "/jobmanager/jobs/"+j.ID, nil, http.StatusOK, &now)
		taken = append(taken, now)
	}
	return taken
}

// Report tells the state of a job that the agent owns, with one condition that is True.
func (a *Agent) Report(j Job, state, condition, message string) {
	a.sys.t.Helper()
	a.call(http.MethodPut, "/jobmanager/jobs", map[string]any{
		"id": j.ID, "owner_id": a.id, "type": j.Type, "state": state, "epoch": j.Epoch,
		"resource": map[string]any{
			"resource_uuid": "resource-" + j.ID,
			"conditions": []map[string]any{{
				"type": condition, "status": "True", "lastTransitionTime": time.Now().UTC(), "reason": "Reported",
				"message": message,
			}},
		},
	}, http.StatusOK, nil)
}

func (a *Agent) call(method, path string, body any, want int, into any) {
	t := a.sys.t
	t.Helper()
	text, err := json.Marshal(body)
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), method, a.sys.URL+path, bytes.NewReader(text))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+a.token)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, want, resp.StatusCode, "%s %s: %s", method, path, answer)
	if into != nil {
		require.NoError(t, json.Unmarshal(answer, into))
	}
}
