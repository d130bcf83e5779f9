package fleet

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
)

// manager implements the agents' part of the job manager's contract, with the rules that matter to agents: a job is
// taken once, and only reports of its owner at its epoch are accepted.
type manager struct {
	mu      sync.Mutex
	jobs    map[string]*Job
	reports []report // accepted, in order
	stati   []status // accepted, in order
	refusal map[string]int
	calls   []string // "METHOD path" of every request
	hook    func(call string)
}

func newManager() *manager { return &manager{jobs: map[string]*Job{}, refusal: map[string]int{}} }

// RoundTrip lets an http.Client talk to the manager without a network.
func (m *manager) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	return w.Result(), nil
}

func (m *manager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := r.Method + " " + r.URL.Path
	if m.hook != nil {
		m.hook(call)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, call)
	for prefix, code := range m.refusal {
		if strings.HasPrefix(call, prefix) {
			w.WriteHeader(code)
			return
		}
	}
	path := strings.TrimPrefix(r.URL.Path, "/jobmanager/")
	switch parts := strings.Split(path, "/"); {
	case r.Method == http.MethodGet && strings.HasPrefix(path, "jobs/executable/"):
		m.list(w, parts[2], strings.Join(parts[3:], "/"))
	case r.Method == http.MethodPatch && strings.HasPrefix(path, "jobs/promote/"):
		m.promote(w, r, parts[2])
	case r.Method == http.MethodPut && path == "jobs":
		m.report(w, r)
	case r.Method == http.MethodPut && path == "resources/status":
		m.status(w, r)
	case r.Method == http.MethodGet && len(parts) == 2:
		if j := m.jobs[parts[1]]; j != nil {
			_ = json.NewEncoder(w).Encode(j)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
}

func (m *manager) list(w http.ResponseWriter, orchestrator, agentID string) {
	jobs := []*Job{}
	for _, j := range m.jobs {
		free := j.OwnerID == "" && j.Type == typeCreate
		if j.State == "Created" && j.Orchestrator == orchestrator && (free || j.OwnerID == agentID) {
			jobs = append(jobs, j)
		}
	}
	_ = json.NewEncoder(w).Encode(jobs)
}

func (m *manager) promote(w http.ResponseWriter, r *http.Request, id string) {
	var body struct {
		OwnerID string `json:"owner_id"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	j := m.jobs[id]
	switch {
	case j == nil:
		w.WriteHeader(http.StatusNotFound)
	case j.State != "Created" || (j.OwnerID != "" && j.OwnerID != body.OwnerID):
		w.WriteHeader(http.StatusConflict)
	default:
		j.State, j.OwnerID = stateProgressing, body.OwnerID
		w.WriteHeader(http.StatusNoContent)
	}
}

func (m *manager) report(w http.ResponseWriter, r *http.Request) {
	var in report
	_ = json.NewDecoder(r.Body).Decode(&in)
	j := m.jobs[in.ID]
	switch {
	case j == nil:
		w.WriteHeader(http.StatusNotFound)
	case j.OwnerID != in.OwnerID || j.Epoch != in.Epoch || j.Type != in.Type:
		w.WriteHeader(http.StatusConflict)
	default:
		j.State, j.Resource = enum(in.State), in.Resource
		m.reports = append(m.reports, in)
	}
}

func (m *manager) status(w http.ResponseWriter, r *http.Request) {
	var in status
	_ = json.NewDecoder(r.Body).Decode(&in)
	j := m.jobs[in.JobID]
	switch {
	case j == nil:
		w.WriteHeader(http.StatusNotFound)
	case j.State == "Created", j.OwnerID != in.OwnerID, j.Epoch != in.Epoch:
		w.WriteHeader(http.StatusConflict)
	default:
		m.stati = append(m.stati, in)
	}
}

const webYAML = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  template:
    spec:
      containers:
      - name: nginx
        resources: {requests: {cpu: 500m, memory: 256Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
`

// put stores a job with its target cluster and node.
func (m *manager) put(typ enum, cluster, node string, epoch int64) *Job {
	j := &Job{
		ID: uuid.NewString(), Type: typ, State: "Created", Epoch: epoch, Namespace: "shop-1234",
		GroupID: "27a69131-f34d-44b3-9063-81501a1c0fc8", GroupName: "shop",
		Instruction: Instruction{ComponentName: "web", Contents: []Content{{Name: "web", YAML: webYAML}}},
	}
	m.place(j, cluster, node, epoch)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.jobs[j.ID] = j
	return j
}

// place gives the job a target by a new decision.
func (m *manager) place(j *Job, cluster, node string, epoch int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j.Orchestrator = "ocm"
	if cluster == "harbour" {
		j.Orchestrator = "nuvla"
	}
	j.Targets.target = target{Cluster: cluster, Node: node, Orchestrator: j.Orchestrator}
	j.State, j.Epoch, j.OwnerID = "Created", epoch, ""
}

// clean stores the job that removes the copy that its former owner made by the decision of that epoch.
func (m *manager) clean(j *Job, owner, cluster string, epoch int64) *Job {
	c := m.put(typeDelete, cluster, "", epoch)
	m.mu.Lock()
	defer m.mu.Unlock()
	c.Cleans, c.OwnerID = j.ID, owner
	return c
}

// ask gives the owner of the job another operation.
func (m *manager) ask(j *Job, typ, subType enum) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j.Type, j.SubType, j.State = typ, subType, "Created"
}

func (m *manager) state(j *Job) enum {
	m.mu.Lock()
	defer m.mu.Unlock()
	return j.State
}

// heard returns the accepted reports on jobs, told those on copies.
func (m *manager) heard() []report {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.reports)
}

func (m *manager) statuses() []status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.stati)
}

// refuse answers every call with that prefix with the code; 0 ends it.
func (m *manager) refuse(prefix string, code int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if code == 0 {
		delete(m.refusal, prefix)
		return
	}
	m.refusal[prefix] = code
}

// store records the samples that a fleet emits.
type store struct {
	mu     sync.Mutex
	rounds [][]prometheus.Sample
}

func (s *store) append(_ context.Context, samples []prometheus.Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rounds = append(s.rounds, samples)
	return nil
}

// all returns what was emitted in each round.
func (s *store) all() [][]prometheus.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rounds)
}

// last returns the last round.
func (s *store) last() []prometheus.Sample {
	all := s.all()
	return all[len(all)-1]
}

// newFleet returns the default fleet with its agents connected to the manager, without delays. Its clock stands still
// unless the test moves it.
func newFleet(t *testing.T, m *manager, change ...func(*Options)) *Fleet {
	t.Helper()
	o := Options{
		Plan: Default(), File: filepath.Join(t.TempDir(), "fleet.json"), API: "http://littoral.test",
		Client: func(string) *http.Client { return &http.Client{Transport: m} },
		Append: discard, Now: func() time.Time { return start }, Log: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&o)
	}
	f, err := New(o)
	require.NoError(t, err)
	return f
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
