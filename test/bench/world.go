package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/infra/runner/fleet"
	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/loopback"
	"github.com/littoral-project/littoral/shared/migrate"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/localpg"
	"github.com/littoral-project/littoral/test/images"
	"github.com/littoral-project/littoral/test/inprocess"
	"github.com/littoral-project/littoral/triggers"
)

const audience = "littoral"

// dbPassword is used with SCRAM, as on a cluster; the server listens only on loopback, for this run.
const dbPassword = "bench"

// world is the environment of the functions.
type world struct {
	triggers fs.FS // of the laptop host; nil = those of the tree

	dir    string
	server *localpg.Server
	port   string // of Postgres
	// The stored form of dbPassword, which is the same text for Postgres and PgBouncer.
	verifier string
	issuer   *issuer.Issuer
	oidc     string // URL of the issuer
	fleet    *fleet.Fleet
	metrics  string // URL of Prometheus
	rules    string // folder of Prometheus' rule files
	tokens   map[string]string

	undo []func()
}

// newWorld starts a Postgres with fsync on, an issuer and a Prometheus with the telemetry of the default fleet.
func newWorld(ctx context.Context) (w *world, err error) {
	w = &world{tokens: map[string]string{}}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.dir, err = os.MkdirTemp("", "littoral-bench-"); err != nil {
		return w, err
	}
	w.undo = append(w.undo, func() { _ = os.RemoveAll(w.dir) })
	if err := os.Chmod(w.dir, 0o755); err != nil { // Postgres may run as another user
		return w, err
	}
	if err := w.startPostgres(ctx); err != nil {
		return w, err
	}
	if err := w.startIssuer(ctx); err != nil {
		return w, err
	}
	return w, w.startTelemetry(ctx)
}

func (w *world) close() {
	for i := len(w.undo) - 1; i >= 0; i-- {
		w.undo[i]()
	}
}

// startPostgres accepts clients by socket, as on laptops, and by TCP with SCRAM.
func (w *world) startPostgres(ctx context.Context) error {
	hba := filepath.Join(w.dir, "pg_hba.conf")
	rules := "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
	if err := os.WriteFile(hba, []byte(rules), 0o644); err != nil { // read by the user Postgres runs as
		return err
	}
	address, err := loopback.Free(ctx)
	if err != nil {
		return err
	}
	w.port = fmt.Sprint(address.Port())
	// The URLs of localpg have no port, so the setting of libpq and pgx applies.
	if err := os.Setenv("PGPORT", w.port); err != nil {
		return err
	}
	w.server, err = localpg.Start(ctx, localpg.Options{
		Dir: filepath.Join(w.dir, "pg"), Durable: true,
		Notice: func(text string) { fmt.Fprintln(os.Stderr, text) },
		Settings: map[string]string{
			"listen_addresses": "127.0.0.1", "port": w.port, "hba_file": hba, "max_connections": "100",
		},
	})
	if err != nil {
		return err
	}
	w.undo = append(w.undo, func() {
		if err := w.server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	makeVerifier := exec.CommandContext(ctx, "go", "run", images.Module+"/infra/pgbouncer/verifier") // as scripts/deploy
	makeVerifier.Stdin = strings.NewReader(dbPassword)
	verifier, err := makeVerifier.Output()
	if err != nil {
		return fmt.Errorf("make the verifier of a password: %w", err)
	}
	w.verifier = strings.TrimSpace(string(verifier))
	conn, err := pgx.Connect(ctx, w.server.URL("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, fmt.Sprintf(`alter role %s password '%s'`, localpg.User, w.verifier))
	return err
}

// database creates a migrated database and returns its URLs by socket and by TCP.
func (w *world) database(ctx context.Context, name string) (socket, tcp string, err error) {
	if err := w.server.EnsureDatabase(ctx, name); err != nil {
		return "", "", err
	}
	socket = w.server.URL(name) + "&port=" + w.port
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(localpg.User, dbPassword),
		Host: net.JoinHostPort("127.0.0.1", w.port), Path: "/" + name, RawQuery: "sslmode=disable",
	}
	return socket, u.String(), migrate.Up(ctx, socket)
}

// serve listens on loopback until the world closes.
func (w *world) serve(ctx context.Context, make func(base string) (http.Handler, error)) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	base := "http://" + l.Addr().String()
	h, err := make(base)
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	w.undo = append(w.undo, func() { _ = server.Close() })
	return base, nil
}

func (w *world) startIssuer(ctx context.Context) error {
	_, err := w.serve(ctx, func(base string) (http.Handler, error) {
		w.oidc = base + "/oidc"
		clients := append(issuer.People(), issuer.AgentClient(jobAgent))
		for _, id := range fleet.Default().AgentIDs() {
			clients = append(clients, issuer.AgentClient(id))
		}
		var err error
		w.issuer, err = issuer.New(issuer.Options{
			URL: w.oidc, Dir: filepath.Join(w.dir, "oidc"), Audience: audience, Clients: clients,
			Users: issuer.Users(), Console: []string{benchOrigin},
		})
		if err != nil {
			return nil, err
		}
		return w.issuer.Handler(), nil
	})
	return err
}

func (w *world) startTelemetry(ctx context.Context) error {
	server, err := prometheus.Open(prometheus.Options{Dir: filepath.Join(w.dir, "prometheus")})
	if err != nil {
		return err
	}
	w.undo = append(w.undo, func() { _ = server.Close() })
	w.metrics, err = w.serve(ctx, func(string) (http.Handler, error) { return server.Handler(), nil })
	if err != nil {
		return err
	}
	w.rules = filepath.Join(w.dir, "rules")
	if err := os.Mkdir(w.rules, 0o700); err != nil {
		return err
	}
	w.fleet, err = fleet.New(fleet.Options{
		Plan: fleet.Default(), File: filepath.Join(w.dir, "fleet.json"), Append: server.Append,
		Log: slog.New(slog.DiscardHandler),
	})
	return err
}

// token returns an access token of a person or, for "agent:<id>", of an agent. It is cached, as a real client would do:
// signing one takes longer than many calls.
func (w *world) token(ctx context.Context, client string) (string, error) {
	if token, ok := w.tokens[client]; ok {
		return token, nil
	}
	token, _, err := w.issuer.Token(ctx, client)
	w.tokens[client] = token
	return token, err
}

// system is all functions in this process, with its own database. Each event is delivered before the call that caused
// it returns.
type system struct {
	world  *world
	url    string
	db     *store.DB
	broker *inprocess.Broker
	socket string // URL of the database by socket
	tcp    string // the same by TCP
}

// wiring is inserted by a part between the functions and the world in order to observe them; all fields may be nil.
type wiring struct {
	around  func(name string, h http.Handler) http.Handler
	tracer  pgx.QueryTracer
	metrics string // the address of another Prometheus than that of the world
}

func (w *world) newSystem(ctx context.Context, database string, watch wiring) (*system, error) {
	socket, tcp, err := w.database(ctx, database)
	if err != nil {
		return nil, err
	}
	s := &system{world: w, socket: socket, tcp: tcp}
	if s.broker, err = inprocess.NewBroker(triggers.Files); err != nil {
		return nil, err
	}
	if s.db, err = store.Open(ctx, store.Config{DatabaseURL: socket, MaxConns: 8}, s.broker, watch.tracer); err != nil {
		return nil, err
	}
	w.undo = append(w.undo, s.db.Close)
	verifier := auth.NewVerifier(auth.Config{Issuer: w.oidc, Audience: audience}, http.DefaultClient, nil)
	_, consumers, err := inprocess.Mount(function.Platform{DB: s.db, Auth: verifier, Settings: settings.Map(map[string]string{
		"PROMETHEUS_ADDRESS": cmp.Or(watch.metrics, w.metrics), "RULES_BACKEND": "files", "RULES_DIR": w.rules,
	})})
	if err != nil {
		return nil, err
	}
	router := function.NewRouter()
	for _, entry := range functions.Registry {
		h := consumers[entry.Name]
		if watch.around != nil {
			h = watch.around(entry.Name, h)
		}
		consumers[entry.Name] = h
		for _, route := range entry.Spec.Patterns() {
			router.Handle(route, h)
		}
	}
	s.broker.Connect(consumers, true)
	s.url, err = w.serve(ctx, func(string) (http.Handler, error) { return router, nil })
	return s, err
}

// refresh emits telemetry and makes the aggregator read it.
func (s *system) refresh(ctx context.Context) error {
	if err := s.world.fleet.Emit(ctx); err != nil {
		return err
	}
	if err := s.broker.TickOne(ctx, "aggregator-tick"); err != nil {
		return err
	}
	return s.db.Flush(ctx)
}

// call sends a request as the client and decodes the answer, which must be a 2xx. Its events are delivered when call
// returns.
func (s *system) call(ctx context.Context, client, method, path string, body []byte, into any) error {
	token, err := s.world.token(ctx, client)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, s.db.Flush(ctx)); err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(answer))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}

// group and job are the fields of the API's answers that are read here.
type group struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Jobs   []work `json:"jobs"`
}

type work struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	State   string `json:"state"`
	Epoch   int64  `json:"epoch"`
	Targets struct {
		Orchestrator string `json:"orchestrator"`
		Cluster      string `json:"cluster_name"`
		Node         string `json:"node_name"`
	} `json:"targets"`
}

// submit submits the descriptor; the application is placed when it returns.
func (s *system) submit(ctx context.Context, descriptor []byte) (group, error) {
	var g group
	if err := s.call(ctx, "operator", http.MethodPost, "/jobmanager/groups", descriptor, &g); err != nil {
		return g, err
	}
	return g, s.call(ctx, "operator", http.MethodGet, "/jobmanager/groups/"+g.ID, nil, &g)
}

// finish lets the agents take all jobs and report them as done.
func (s *system) finish(ctx context.Context) error {
	for _, c := range fleet.Default().Clusters {
		a := agent{system: s, orchestrator: c.Type, id: c.AgentID}
		if _, err := a.work(ctx); err != nil {
			return err
		}
	}
	return nil
}

// agentIn returns the name of the agent of a cluster in the fleet.
func agentIn(cluster string) string {
	for _, c := range fleet.Default().Clusters {
		if c.Name == cluster || c.Key == cluster {
			return c.AgentID
		}
	}
	return ""
}

// agent works like an agent of ICOS.
type agent struct {
	system           *system
	orchestrator, id string
}

func (a agent) call(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return a.system.call(ctx, "agent:"+a.id, method, path, text, into)
}

// work takes every job that the agent may take, reports it as applied and then as available, and counts them.
func (a agent) work(ctx context.Context) (int, error) {
	jobs, err := a.claimAll(ctx)
	if err != nil {
		return 0, err
	}
	for _, j := range jobs {
		if err := a.report(ctx, j, "Progressing", "Applied"); err != nil {
			return 0, err
		}
		if err := a.report(ctx, j, "Finished", "Available"); err != nil {
			return 0, err
		}
	}
	return len(jobs), nil
}

func (a agent) claimAll(ctx context.Context) ([]work, error) {
	var jobs []work
	if err := a.call(ctx, http.MethodGet, "/jobmanager/jobs/executable/"+a.orchestrator+"/"+a.id, nil, &jobs); err != nil {
		return nil, err
	}
	for _, j := range jobs {
		err := a.call(ctx, http.MethodPatch, "/jobmanager/jobs/promote/"+j.ID, map[string]string{"owner_id": a.id}, nil)
		if err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

func (a agent) report(ctx context.Context, j work, state, condition string) error {
	return a.call(ctx, http.MethodPut, "/jobmanager/jobs", reportOf(j, a.id, state, condition), nil)
}

func reportOf(j work, agent, state, condition string) map[string]any {
	return map[string]any{
		"id": j.ID, "owner_id": agent, "type": j.Type, "state": state, "epoch": j.Epoch,
		"resource": map[string]any{
			"resource_uuid": "resource-" + j.ID, "resource_name": "bench",
			"conditions": []map[string]any{{
				"type": condition, "status": "True", "lastTransitionTime": time.Now().UTC(), "reason": "Reported",
			}},
		},
	}
}

// event returns a delivery as a Broker sends it.
func event(ctx context.Context, typ, subject string, data any) ([]byte, error) {
	e, err := events.New(ctx, "/bench", typ, subject, data)
	if err != nil {
		return nil, err
	}
	return json.Marshal(e)
}
