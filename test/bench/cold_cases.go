package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/shared/events"
)

// scene is a database with some content, and what a process needs to work on it.
type scene struct {
	system  *system
	sink    string // a Broker that accepts everything
	rules   string // a rules API that accepts everything
	running group  // Available
	taken   group  // promoted, not yet reported
	policy  string // id of a policy about running, with a variable "limit"

	kubeconfigs, hub string // folder and file

	back string // the statements of restore
}

// ask is a request that a function must answer with a 2xx, or a redirect, or the status by which it is refused.
type ask struct {
	client       string // the client that sends it; "" for none
	method, path string
	body         []byte
	header       http.Header // beside the token
	refused      int         // the status, where all that a function needs for an answer is more than a bench has
}

// descriptor is small: the start of a process matters, not the amount of its work.
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
	s.rules, err = w.serve(ctx, func(string) (http.Handler, error) { return http.HandlerFunc(anyRule), nil })
	if err != nil {
		return nil, err
	}
	api, err := w.serve(ctx, func(string) (http.Handler, error) { return http.HandlerFunc(noObjects), nil })
	if err != nil {
		return nil, err
	}
	if s.kubeconfigs, s.hub, err = writeKubeconfig(w.dir, api); err != nil {
		return nil, err
	}
	if err := system.refresh(ctx); err != nil {
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
	if _, err = s.agentOf(s.taken).claimAll(ctx); err != nil {
		return nil, err
	}
	s.policy, err = s.watch(ctx, unheard())
	return s, err
}

func (s *scene) environment(database string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "DATABASE_URL=" + database, "K_SINK=" + s.sink,
		"OIDC_ISSUER=" + s.system.world.oidc, "OIDC_AUDIENCE=" + audience, "PROMETHEUS_ADDRESS=" + s.system.world.metrics,
		"OBJECTS_URL=file://" + s.system.world.dir + "/objects", "DEPLOYMENTMANAGER_ID=bench",
		"SESSION_KEY=" + benchSessionKey, "LOGIN_CLIENT_ID=" + issuer.Console, "LOGIN_CLIENT_SECRET=" + s.system.world.issuer.Credentials(issuer.Console).ClientSecret,
		"KUBECONFIG_DIR=" + s.kubeconfigs, "OCM_HUB=" + s.hub,
		"RULES_API_URL=" + s.rules, "RULES_API_TOKEN=any", "RULES_BACKEND=files", "RULES_DIR=" + s.system.world.rules,
		"LOGS_BACKEND=files", "LOGS_DIR=" + s.system.world.dir + "/logs",
	}
}

func text(name string) []byte { return fmt.Appendf(nil, descriptor, name) }

func (s *scene) submit(ctx context.Context) (group, error) {
	return s.system.submit(ctx, text("bench"))
}

func (s *scene) get(ctx context.Context, id string) (g group, err error) {
	return g, s.system.call(ctx, "viewer", http.MethodGet, "/jobmanager/groups/"+id, nil, &g)
}

// stopped returns an application that was stopped before any agent took it.
func (s *scene) stopped(ctx context.Context) (group, error) {
	g, err := s.submit(ctx)
	if err != nil {
		return g, err
	}
	return g, s.system.call(ctx, "operator", http.MethodPut, "/jobmanager/groups/stop/"+g.ID, nil, nil)
}

// lastOf is the newest event of a type in the outbox.
const lastOf = `select event from outbox where event->>'type' = $1 order by id desc limit 1`

// held returns the event of the type that work emits. The Broker does not get it: it stays in the outbox, like one that
// waits for the sweep.
func (s *scene) held(ctx context.Context, typ string, work func() error) (e cloudevents.Event, err error) {
	s.system.broker.Fail(errors.New("held back"))
	defer s.system.broker.Fail(nil)
	if err := errors.Join(work(), s.system.db.Flush(ctx)); err != nil {
		return e, err
	}
	var body []byte
	if err := s.system.db.QueryRow(ctx, lastOf, typ).Scan(&body); err != nil {
		return e, fmt.Errorf("no %s was announced: %w", typ, err)
	}
	return e, json.Unmarshal(body, &e)
}

// delivery is the request with which a Broker delivers an event.
func delivery(e cloudevents.Event, err error) (ask, error) {
	if err != nil {
		return ask{}, err
	}
	body, err := json.Marshal(e)
	return ask{method: http.MethodPost, path: "/", body: body}, err
}

func (s *scene) agentOf(g group) agent {
	target := g.Jobs[0].Targets
	return agent{system: s.system, orchestrator: target.Orchestrator, id: agentIn(target.Cluster)}
}

// request returns the raw request of the function's case.
func (s *scene) request(ctx context.Context, name string) (ask, error) {
	if name == hello {
		return ask{method: http.MethodGet, path: "/"}, nil
	}
	return cases[name](ctx, s)
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
	maps.Copy(r.Header, a.header)
	if a.path == "/" && a.body != nil {
		r.Header.Set("Content-Type", "application/cloudevents+json")
	}
	var out bytes.Buffer
	err = r.Write(&out)
	return out.Bytes(), err
}

// maker prepares a request to a function.
type maker func(context.Context, *scene) (ask, error)

// cases has a request for each function, in files by component. A test fails if a function has none. Homes read no
// Postgres; all others read it, and most write.
var cases = func() map[string]maker {
	all := map[string]maker{}
	for _, some := range []map[string]maker{applicationCases, operatorCases, deployerCases, policyCases, ruleCases, outboxCases, signInCases, shellCases, forecastCases, codecoCases, metadataCases, networkCases, pdlcCases} {
		maps.Copy(all, some)
	}
	return all
}()

var applicationCases = map[string]maker{
	"aggregator-home": get("", "/aggregator/healthz"),
	"jobmanager-home": get("", "/jobmanager/healthz"),
	"matchmaker-home": get("", "/matchmaker/healthz"),

	"api-openapi":         get("", "/openapi.yaml"),
	"aggregator-taxonomy": get("viewer", "/aggregator/"),
	"bus-get":             get("viewer", "/bus/bench"),
	"bus-put":             send("operator", http.MethodPut, "/bus/bench", "bench"),
	"bus-forward":         tick,
	"bus-delete":          send("operator", http.MethodDelete, "/bus/bench", ""),
	"clusterlink-peers":   get("viewer", "/clusterlink/peers"),
	"clusterlink-sync":    tick,
	"clusterlink-link": func(ctx context.Context, s *scene) (ask, error) {
		g, err := s.submit(ctx)
		if err != nil {
			return ask{}, err
		}
		return delivery(events.New(ctx, "/functions/matchmaker-place", events.ApplicationPlaced, "bench", events.Application{ID: uuid.MustParse(g.ID)}))
	},
	"console-app":             get("", "/console/"),
	"events-stream":           get("viewer", "/events/stream?after=0"),
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

	"jobmanager-archive":          tick,
	"jobmanager-history-archived": get("viewer", "/jobmanager/history/archived?limit=10"),

	"aggregator-alerted": func(context.Context, *scene) (ask, error) {
		return document("admin", http.MethodPost, "/aggregator/webhooks/alertmanager", map[string]any{"version": "4"})
	},
	"aggregator-tick":     tick,
	"clock-pause":         tick,
	"outbox-follow":       tick,
	"jobmanager-displace": tick,
	"matchmaker-place": func(ctx context.Context, s *scene) (ask, error) {
		return delivery(s.held(ctx, events.ApplicationSubmitted, func() error { _, err := s.submit(ctx); return err }))
	},
	"matchmaker-place-displaced": func(ctx context.Context, s *scene) (ask, error) {
		var g group
		submitted, err := s.held(ctx, events.ApplicationSubmitted, func() (err error) { g, err = s.submit(ctx); return err })
		if err != nil {
			return ask{}, err
		}
		about, err := events.Data[events.Application](submitted)
		if err != nil {
			return ask{}, err
		}
		return delivery(events.New(ctx, "/functions/jobmanager-displace", events.ApplicationDisplaced, g.ID, about))
	},
	"topologyexporter-home":             get("", "/topologyexporter/healthz"),
	"topologyexporter-application-list": get("viewer", "/applications"),
	"topologyexporter-application-put":  send("operator", http.MethodPut, "/applications/bench", "bench"),
	"topologyexporter-application-delete": func(ctx context.Context, s *scene) (ask, error) {
		err := s.system.call(ctx, "operator", http.MethodPut, "/applications/bench", text("bench"), nil)
		return ask{client: "operator", method: http.MethodDelete, path: "/applications/bench"}, err
	},
	"topologyexporter-heartbeat": tick,
	"topologyexporter-publish": func(ctx context.Context, _ *scene) (ask, error) {
		return delivery(events.New(ctx, "/functions/aggregator-tick", events.PodsChanged, "bench", events.Topology{
			Changes: []events.TopologyChange{{Cluster: "edge", Node: "n", Change: "pods"}},
		}))
	},
	"matchmaker-retry": func(ctx context.Context, _ *scene) (ask, error) {
		return delivery(events.New(ctx, "/functions/aggregator-tick", events.TopologyChanged, "bench", events.Topology{
			Changes: []events.TopologyChange{{Cluster: "edge", Node: "n", Change: "added"}},
		}))
	},
}

func get(client, path string) maker {
	return func(_ context.Context, s *scene) (ask, error) {
		return ask{client: client, method: http.MethodGet, path: s.fill(path)}, nil
	}
}

// refusal makes a request that is refused.
func refusal(status int, make maker) maker {
	return func(ctx context.Context, s *scene) (ask, error) {
		a, err := make(ctx, s)
		a.refused = status
		return a, err
	}
}

// send makes a request whose body is the descriptor of an application with that name.
func send(client, method, path, name string) maker {
	return func(_ context.Context, s *scene) (ask, error) {
		return ask{client: client, method: method, path: s.fill(path), body: text(name)}, nil
	}
}

func (s *scene) fill(path string) string {
	return strings.NewReplacer("{running}", s.running.ID, "{job}", s.running.Jobs[0].ID, "{policy}", s.policy).Replace(path)
}

func document(client, method, path string, body any) (ask, error) {
	text, err := json.Marshal(body)
	return ask{client: client, method: method, path: path, body: text}, err
}

// tick is the request of a PingSource.
func tick(ctx context.Context, _ *scene) (ask, error) {
	body, err := event(ctx, events.Tick, time.Now().UTC().Format(time.RFC3339Nano), nil)
	return ask{method: http.MethodPost, path: "/", body: body}, err
}
