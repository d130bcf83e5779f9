package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
)

// scene is a database with something in it, and what a process needs to work on it.
type scene struct {
	system  *system
	sink    string // a Broker that takes everything
	running group  // Available
	taken   group  // promoted, not reported yet
}

// ask is a request that a function answers with a 2xx.
type ask struct {
	client       string // whose token it carries; "" for none
	method, path string
	body         []byte
}

// descriptor is small: what matters is how a process starts, not how much work it finds.
const descriptor = `name: %s
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 10m, memory: 16Mi}
    manifests: [{name: web, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web},}}]
`

func newScene(ctx context.Context, w *world) (*scene, error) {
	system, err := w.newSystem(ctx, "cold", wiring{})
	if err != nil {
		return nil, err
	}
	s := &scene{system: system}
	s.sink, err = w.serve(ctx, func(string) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusAccepted)
		}), nil
	})
	if err != nil {
		return nil, err
	}
	if err := system.look(ctx); err != nil {
		return nil, err
	}
	if s.running, err = s.submit(ctx); err != nil {
		return nil, err
	}
	if err := system.finish(ctx); err != nil {
		return nil, err
	}
	if s.running, err = s.get(ctx, s.running.ID); err != nil {
		return nil, err
	}
	if s.running.Status != "Available" {
		return nil, fmt.Errorf("the application is %s, not Available", s.running.Status)
	}
	if s.taken, err = s.submit(ctx); err != nil {
		return nil, err
	}
	_, err = s.agentOf(s.taken).take(ctx)
	return s, err
}

func (s *scene) environment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "DATABASE_URL=" + s.system.tcp, "K_SINK=" + s.sink,
		"OIDC_ISSUER=" + s.system.world.oidc, "OIDC_AUDIENCE=" + audience, "PROMETHEUS_ADDRESS=" + s.system.world.metrics,
	}
}

func text(name string) []byte { return fmt.Appendf(nil, descriptor, name) }

func (s *scene) submit(ctx context.Context) (group, error) {
	return s.system.submit(ctx, text("bench"))
}

func (s *scene) get(ctx context.Context, id string) (g group, err error) {
	return g, s.system.call(ctx, "viewer", http.MethodGet, "/jobmanager/groups/"+id, nil, &g)
}

// stopped returns an application that nobody has taken and that was stopped.
func (s *scene) stopped(ctx context.Context) (group, error) {
	g, err := s.submit(ctx)
	if err != nil {
		return g, err
	}
	return g, s.system.call(ctx, "operator", http.MethodPut, "/jobmanager/groups/stop/"+g.ID, nil, nil)
}

// waiting returns an application that the matchmaker has not been told of.
func (s *scene) waiting(ctx context.Context) (group, error) {
	s.system.broker.Fail(errors.New("held back"))
	defer s.system.broker.Fail(nil)
	return s.submit(ctx)
}

func (s *scene) agentOf(g group) agent {
	target := g.Jobs[0].Targets
	return agent{system: s.system, orchestrator: target.Orchestrator, id: agentIn(target.Cluster)}
}

// request returns the raw request that the function's case makes.
func (s *scene) request(ctx context.Context, name string) ([]byte, error) {
	if name == hello {
		return raw(ctx, s.system.world, ask{method: http.MethodGet, path: "/"})
	}
	a, err := cases[name](ctx, s)
	if err != nil {
		return nil, err
	}
	return raw(ctx, s.system.world, a)
}

func raw(ctx context.Context, w *world, a ask) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, a.method, "http://127.0.0.1"+a.path, bytes.NewReader(a.body))
	if err != nil {
		return nil, err
	}
	if a.client != "" {
		token, err := w.token(ctx, a.client)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if a.path == "/" && a.body != nil {
		r.Header.Set("Content-Type", "application/cloudevents+json")
	}
	var out bytes.Buffer
	err = r.Write(&out)
	return out.Bytes(), err
}

// cases holds what each function is asked. Homes read no Postgres and aggregator-taxonomy reads Prometheus; all others
// read, and most write.
var cases = map[string]func(context.Context, *scene) (ask, error){
	"aggregator-home": get("", "/aggregator/healthz"),
	"jobmanager-home": get("", "/jobmanager/healthz"),
	"matchmaker-home": get("", "/matchmaker/healthz"),

	"aggregator-taxonomy":     get("viewer", "/aggregator/"),
	"jobmanager-group-get":    get("viewer", "/jobmanager/groups/{running}"),
	"jobmanager-group-list":   get("viewer", "/jobmanager/groups?limit=10"),
	"jobmanager-history-list": get("viewer", "/jobmanager/history?limit=10"),
	"jobmanager-job-get":      get("viewer", "/jobmanager/jobs/{job}"),
	"jobmanager-job-list":     get("viewer", "/jobmanager/jobs?limit=10"),
	"jobmanager-status-get":   get("viewer", "/jobmanager/status/{job}"),

	"jobmanager-group-create": send("operator", http.MethodPost, "/jobmanager/groups", "bench"),
	"jobmanager-group-update": send("operator", http.MethodPut, "/jobmanager/groups/{running}", "bench"),
	"matchmaker-explain":      send("viewer", http.MethodPost, "/matchmaker/explain", "another"),
	"matchmaker-matchmake":    send("viewer", http.MethodPost, "/matchmake", "another"),
	"matchmaker-plan":         send("viewer", http.MethodPost, "/matchmaker/plan", "another"),

	"jobmanager-group-delete": func(ctx context.Context, s *scene) (ask, error) {
		g, err := s.stopped(ctx)
		return ask{client: "operator", method: http.MethodDelete, path: "/jobmanager/groups/" + g.ID}, err
	},
	"jobmanager-group-start": func(ctx context.Context, s *scene) (ask, error) {
		g, err := s.stopped(ctx)
		return ask{client: "operator", method: http.MethodPut, path: "/jobmanager/groups/start/" + g.ID}, err
	},
	"jobmanager-group-stop": func(ctx context.Context, s *scene) (ask, error) {
		g, err := s.submit(ctx)
		return ask{client: "operator", method: http.MethodPut, path: "/jobmanager/groups/stop/" + g.ID}, err
	},
	"jobmanager-job-delete": func(ctx context.Context, s *scene) (ask, error) {
		g, err := s.stopped(ctx)
		if err != nil {
			return ask{}, err
		}
		return ask{client: "operator", method: http.MethodDelete, path: "/jobmanager/jobs/" + g.Jobs[0].ID}, nil
	},
	"jobmanager-incompliance-create": func(_ context.Context, s *scene) (ask, error) {
		return document("operator", http.MethodPost, "/jobmanager/policies/incompliance", map[string]any{
			"id": uuid.NewString(), "policyName": "bench", "remediation": "none",
			"subject": map[string]any{"type": "app", "appInstance": s.running.ID, "appComponent": "web"},
		})
	},

	"jobmanager-job-executable": func(_ context.Context, s *scene) (ask, error) {
		a := s.agentOf(s.taken)
		return ask{
			client: "agent:" + a.id, method: http.MethodGet, path: "/jobmanager/jobs/executable/" + a.orchestrator + "/" + a.id,
		}, nil
	},
	"jobmanager-job-lock": func(_ context.Context, s *scene) (ask, error) {
		body := map[string]any{"state": 2, "owner_id": s.agentOf(s.taken).id}
		return document("agent:"+s.agentOf(s.taken).id, http.MethodPut, "/jobmanager/jobs/"+s.taken.Jobs[0].ID, body)
	},
	"jobmanager-job-promote": func(_ context.Context, s *scene) (ask, error) {
		a := s.agentOf(s.taken)
		return document("agent:"+a.id, http.MethodPatch, "/jobmanager/jobs/promote/"+s.taken.Jobs[0].ID,
			map[string]any{"owner_id": a.id})
	},
	"jobmanager-job-update": func(_ context.Context, s *scene) (ask, error) {
		a := s.agentOf(s.running)
		return document("agent:"+a.id, http.MethodPut, "/jobmanager/jobs",
			reportOf(s.running.Jobs[0], a.id, "Finished", "Available"))
	},
	"jobmanager-status-update": func(_ context.Context, s *scene) (ask, error) {
		a := s.agentOf(s.running)
		return document("agent:"+a.id, http.MethodPut, "/jobmanager/status", map[string]any{
			"job_id": s.running.Jobs[0].ID, "owner_id": a.id, "status": "Available",
		})
	},

	"aggregator-tick":     tick,
	"jobmanager-displace": tick,
	"outbox-sweep":        tick,
	"matchmaker-place": func(ctx context.Context, s *scene) (ask, error) {
		g, err := s.waiting(ctx)
		if err != nil {
			return ask{}, err
		}
		about := events.Application{ID: uuid.MustParse(g.ID), Name: "bench", Version: 1}
		body, err := event(ctx, events.ApplicationSubmitted, g.ID, about)
		return ask{method: http.MethodPost, path: "/", body: body}, err
	},
}

// guess makes a case of a function that has none: a route that reads without naming anything, or a tick. It reports
// whether the function takes that.
func (s *scene) guess(ctx context.Context, entry function.Entry, program string) bool {
	for _, route := range entry.Spec.Routes {
		path, reads := strings.CutPrefix(strings.TrimSuffix(route, "{$}"), "GET ")
		if reads && !strings.Contains(path, "{") {
			cases[entry.Name] = get(string(entry.Spec.Role), path)
			break
		}
	}
	if slices.Contains(entry.Spec.Consumes, events.Tick) {
		cases[entry.Name] = tick
	}
	return cases[entry.Name] != nil && s.start(ctx, entry.Name, program, &starts{}) == nil
}

func get(client, path string) func(context.Context, *scene) (ask, error) {
	return func(_ context.Context, s *scene) (ask, error) {
		return ask{client: client, method: http.MethodGet, path: s.fill(path)}, nil
	}
}

// send is a request whose body is the descriptor of an application of that name.
func send(client, method, path, name string) func(context.Context, *scene) (ask, error) {
	return func(_ context.Context, s *scene) (ask, error) {
		return ask{client: client, method: method, path: s.fill(path), body: text(name)}, nil
	}
}

func (s *scene) fill(path string) string {
	return strings.NewReplacer("{running}", s.running.ID, "{job}", s.running.Jobs[0].ID).Replace(path)
}

func document(client, method, path string, body any) (ask, error) {
	text, err := json.Marshal(body)
	return ask{client: client, method: method, path: path, body: text}, err
}

// tick is what a PingSource sends.
func tick(ctx context.Context, _ *scene) (ask, error) {
	body, err := event(ctx, events.Tick, time.Now().UTC().Format(time.RFC3339Nano), nil)
	return ask{method: http.MethodPost, path: "/", body: body}, err
}
