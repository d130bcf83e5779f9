package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/agents/controller"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/loopback"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/test/engine"
	"github.com/littoral-project/littoral/test/inprocess"
)

func TestMain(m *testing.M) {
	if os.Getenv(envAgent) != "" {
		if err := run(context.Background(), nil, os.Getenv, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	storetest.Main(m)
}

const descriptor = `name: shop
components:
  - name: web
    type: docker
    manifests:
      - name: web
        manifest: {services: {web: {image: "IMAGE", deploy: {replicas: 2}}}}
`

// site is a controller with two machines, and the agent of the first.
type site struct {
	*inprocess.System
	engine *engine.Server
	agent  *edge
	t      *testing.T
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{System: inprocess.Start(t), engine: engine.Start(t), t: t}
	s.SaveTopology(s.machines())
	s.agent = s.start("agent-harbour", "harbour", s.engine.Host)
	return s
}

// start starts an agent, as after a kill: it keeps nothing.
func (s *site) start(id, cluster, host string) *edge {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "token")
	require.NoError(s.t, os.WriteFile(file, []byte(s.Issuer.AgentToken(s.t, id)+"\n"), 0o600))
	o := options{Controller: controller.Options{URL: s.URL, TokenFile: file}, Agent: id, Clusters: cluster, Engine: host, Wait: time.Second}
	client, err := o.Controller.HTTP()
	require.NoError(s.t, err)
	e, err := newEdge(o, client, slog.New(slog.DiscardHandler))
	require.NoError(s.t, err)
	return e
}

// call sends a request as an operator.
func (s *site) call(method, path, body string, want int) []byte {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, bytes.NewReader([]byte(body)))
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+s.Token(auth.Operator))
	if method == http.MethodPost || method == http.MethodPut && body != "" {
		r.Header.Set("Content-Type", "application/yaml")
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	require.Equal(s.t, want, resp.StatusCode, "%s", text)
	return text
}

// submit hands in the application with the image, and returns its id.
func (s *site) submit(image string) string {
	s.t.Helper()
	return s.submitText(strings.ReplaceAll(descriptor, "IMAGE", image))
}

// submitText hands in an application.
func (s *site) submitText(text string) string {
	s.t.Helper()
	var group struct{ ID string }
	answer := s.call(http.MethodPost, "/jobmanager/groups", text, http.StatusCreated)
	require.NoError(s.t, json.Unmarshal(answer, &group))
	return group.ID
}

// only reads the one job that there is, clean-ups left out.
func (s *site) only() (j inprocess.Job, conditions []job.Condition) {
	s.t.Helper()
	var jobs []struct {
		inprocess.Job
		Resource struct {
			Conditions []job.Condition `json:"conditions"`
		} `json:"resource"`
	}
	require.NoError(s.t, json.Unmarshal(s.call(http.MethodGet, "/jobmanager/jobs", "", http.StatusOK), &jobs))
	for _, one := range jobs {
		if one.Cleans == "" {
			return one.Job, one.Resource.Conditions
		}
	}
	require.Fail(s.t, "no job")
	return j, nil
}

func (s *site) work(e *edge) {
	s.t.Helper()
	require.NoError(s.t, e.deployer.Poll(s.t.Context()))
	require.NoError(s.t, e.deployer.Sync(s.t.Context()))
}

// available demands that the job is so, at the cluster.
func (s *site) available(cluster string) {
	s.t.Helper()
	j, conditions := s.only()
	require.Equal(s.t, "Finished", j.State, "%v", conditions)
	require.Equal(s.t, cluster, j.Targets.Cluster)
	seen := job.Job{Conditions: conditions}
	require.Equal(s.t, "True", seen.Condition(job.ConditionAvailable).Status, "%v", conditions)
}

func TestAnApplicationLivesOnAMachine(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.submit("web:1")
	s.work(s.agent)
	s.available("harbour")
	require.Len(t, s.engine.Containers(), 2)
}

// machines is the topology with both machines, of which the first is the better.
func (s *site) machines() *topology.Taxonomy {
	s.t.Helper()
	taxonomy := &topology.Taxonomy{Cluster: map[string]topology.Cluster{}}
	for i, name := range []string{"harbour", "quay"} {
		node := inprocess.Topology(time.Now()).Cluster["hub"].Node["hub-1"]
		node.Name, node.Engine, node.Type = name+"-host", topology.Docker, topology.Docker
		node.ScaScore = topology.Known(float64(95 - 10*i))
		taxonomy.Cluster[name] = topology.Cluster{
			Type: kinds.Compose, UUID: name + "-uuid", Name: name, Engine: topology.Docker, AgentID: "agent-" + name,
			Node: map[string]topology.Node{name + "-host": node},
		}
	}
	return taxonomy
}

// TestAnAgentThatCanBeReachedIsWoken: it is told that there is work, and asks at once. Nobody else may have it ask.
func TestAnAgentThatCanBeReachedIsWoken(t *testing.T) {
	t.Parallel()
	var agent atomic.Pointer[edge]
	calls := make(chan int, 100)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		agent.Load().wake(recorder, r)
		w.WriteHeader(recorder.Code)
		calls <- recorder.Code
	}))
	t.Cleanup(front.Close)
	const token = "t0ken"
	address := strings.Replace(front.URL, "http://", "http://"+token+"@", 1)
	s := &site{
		System: inprocess.StartWith(t, settings.Map(map[string]string{"EDGE_AGENTS": "quay=https://x@127.0.0.1:1,harbour=" + address})),
		engine: engine.Start(t), t: t,
	}
	s.SaveTopology(s.machines())
	e := s.start("agent-harbour", "harbour", s.engine.Host)
	agent.Store(e)
	e.o.Poll, e.o.Sync, e.o.WakeToken = time.Hour, time.Hour, filepath.Join(t.TempDir(), "token")

	ask := func(given string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/wake", http.NoBody)
		require.NoError(t, err)
		r.Header.Set("Authorization", given)
		got, err := front.Client().Do(r)
		require.NoError(t, err)
		require.NoError(t, got.Body.Close())
		return <-calls
	}
	require.Equal(t, http.StatusUnauthorized, ask("Bearer "), "it has no token yet")
	require.NoError(t, os.WriteFile(e.o.WakeToken, []byte(token+"\n"), 0o600))
	for _, given := range []string{"", "Bearer", "Bearer other", "Basic " + token} {
		require.Equal(t, http.StatusUnauthorized, ask(given))
	}
	require.Empty(t, e.woken)
	for range 3 {
		require.Equal(t, http.StatusAccepted, ask("Bearer "+token))
	}
	require.Len(t, e.woken, 1, "they are one")
	<-e.woken

	ctx, end := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { e.run(ctx) })
	t.Cleanup(func() { end(); all.Wait() })
	require.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return !e.polled.IsZero()
	}, patience, pause, "it asks when it starts, and then not for an hour")
	id := s.submit("web:1")
	require.Equal(t, http.StatusAccepted, <-calls)
	require.Eventually(t, func() bool { return len(s.engine.Containers()) == 2 }, patience, pause)
	s.call(http.MethodDelete, "/jobmanager/groups/"+id+"?stop=true", "", http.StatusAccepted)
	require.Equal(t, http.StatusAccepted, <-calls)
	require.Eventually(t, func() bool { return len(s.engine.Containers()) == 0 }, patience, pause)
}

func TestItAnswersWithTLS(t *testing.T) {
	t.Parallel()
	other := httptest.NewTLSServer(http.NotFoundHandler()) // has a certificate, and a client that trusts it
	t.Cleanup(other.Close)
	at, err := loopback.Free(t.Context())
	require.NoError(t, err)
	end, err := serve(t.Context(), at.String(), http.HandlerFunc((&edge{}).wake), other.TLS.Certificates)
	require.NoError(t, err)
	t.Cleanup(end)
	got, err := other.Client().Post("https://"+at.String()+"/wake", "", http.NoBody)
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	require.Equal(t, http.StatusUnauthorized, got.StatusCode)
}

func TestSettings(t *testing.T) {
	t.Parallel()
	getenv := func(string) string { return "" }
	require.ErrorContains(t, run(t.Context(), nil, getenv, io.Discard), "--controller and --agent-id are required")
	require.ErrorContains(t, run(t.Context(), []string{"x"}, getenv, io.Discard), "is no option")
	root := t.TempDir() + "/"
	_, err := socket("auto", root)
	require.ErrorContains(t, err, "--engine")
	given, err := socket("tcp://host:2376", root)
	require.NoError(t, err)
	require.Equal(t, "tcp://host:2376", given)

	require.ErrorContains(t, run(t.Context(), []string{"--controller=http://x", "--agent-id=a", "--engine=unix:///x", "--bind=off", "--wake=127.0.0.1:0"},
		getenv, io.Discard), "--wake needs --wake-token-file")
	for _, file := range []string{"--ca-file=/nowhere", "--wake=127.0.0.1:0 --wake-token-file=x --wake-cert-file=/nowhere --bind=off --engine=unix:///x", "--client-secret-file=/nowhere --token-url=x"} {
		args := append([]string{"--controller=http://x", "--agent-id=a"}, strings.Fields(file)...)
		require.ErrorContains(t, run(t.Context(), args, getenv, io.Discard), "no such file")
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	e, err := newEdge(options{Controller: controller.Options{URL: "http://127.0.0.1:1"}, Agent: "a", Engine: "unix:///nowhere"}, http.DefaultClient, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	e.poll(t.Context())
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	require.Contains(t, w.Body.String(), "poll: the controller does not answer")
	w = httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, http.StatusNotFound, w.Code)
}
