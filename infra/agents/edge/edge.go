package main

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"

	"github.com/littoral-project/littoral/infra/agents/agent"
	"github.com/littoral-project/littoral/shared/logs/open"
	"github.com/littoral-project/littoral/shared/orchestrator/deployer"
	"github.com/littoral-project/littoral/shared/orchestrator/deployer/polled"
	"github.com/littoral-project/littoral/shared/orchestrator/engine"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/trace"
)

// edge is the agent.
type edge struct {
	o        options
	log      *slog.Logger
	engine   *engine.Engine
	deployer *deployer.Deployer
	logs     *collector    // nil = logs are left to others
	woken    chan struct{} // there is work

	trouble *agent.Trouble

	mu     sync.Mutex
	polled time.Time // when the controller last answered
}

func newEdge(o options, to *http.Client, log *slog.Logger) (*edge, error) {
	if o.Controller.URL == "" || o.Agent == "" {
		return nil, errors.New("--controller and --agent-id are required")
	}
	clusters := []string{o.Agent}
	if o.Clusters != "" {
		clusters = strings.Split(o.Clusters, ",")
	}
	host, err := socket(o.Engine, "/")
	if err != nil {
		return nil, err
	}
	c, err := client.New(client.WithHost(host), client.WithUserAgent("littoral-edge"))
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	e := &edge{
		o: o, log: log.With("agent_id", o.Agent), woken: make(chan struct{}, 1),
		engine: engine.New(c, engine.Options{Clusters: clusters, HostAccess: o.HostAccess, AuthFile: o.AuthFile}),
	}
	e.trouble = agent.NewTrouble(e.log)
	e.deployer = &deployer.Deployer{
		Jobs: &polled.Jobs{Base: o.Controller.URL, HTTP: to, Clusters: clusters}, Log: e.log, Orchestrator: e.engine, Kind: kinds.Compose,
		Settings: deployer.Settings{ID: o.Agent, Wait: o.Wait, Patience: math.MaxInt64},
	}
	if o.Store.Backend != "" {
		store, err := open.Store(o.Store, &http.Client{Timeout: 30 * time.Second})
		if err != nil {
			return nil, err
		}
		if e.logs, err = newCollector(c, store, clusters[0], o.Node, o.LogsState); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// socket returns the address of the engine; of "auto" that of the first that there is below the root.
func socket(given, root string) (string, error) {
	if given != "auto" {
		return given, nil
	}
	for _, name := range []string{"run/docker.sock", "var/run/docker.sock", "run/podman/podman.sock"} {
		if info, err := os.Stat(root + name); err == nil && info.Mode()&os.ModeSocket != 0 {
			return "unix://" + root + name, nil
		}
	}
	return "", errors.New("there is neither /run/docker.sock nor /run/podman/podman.sock; name the socket with --engine")
}

// run works until ctx ends. Polling and comparing do not wait for each other, since fetching an image may take long.
func (e *edge) run(ctx context.Context) {
	e.log.InfoContext(ctx, "agent works", "controller", e.o.Controller.URL)
	e.trouble.Noted(ctx, "keep", e.engine.Keep(ctx)) // after a reboot, whether or not there is a controller
	var all sync.WaitGroup
	all.Go(func() { e.each(ctx, e.o.Poll, e.woken, e.poll) })
	all.Go(func() { e.each(ctx, e.o.Sync, nil, e.sync) })
	if e.logs != nil {
		all.Go(func() {
			e.each(ctx, e.o.LogsEvery, nil, func(ctx context.Context) { e.trouble.Noted(ctx, "logs", e.logs.collect(ctx)) })
		})
	}
	all.Wait()
}

// each calls work now, after each pause, and whenever it is woken.
func (e *edge) each(ctx context.Context, pause time.Duration, woken <-chan struct{}, work func(context.Context)) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		work(trace.Start(ctx, ""))
		select {
		case <-ctx.Done():
			return
		case <-woken:
		case <-ticker.C:
		}
	}
}

// poll takes the jobs that there are.
func (e *edge) poll(ctx context.Context) {
	err := e.deployer.Poll(ctx)
	if err == nil {
		e.mu.Lock()
		e.polled = time.Now()
		e.mu.Unlock()
	}
	e.trouble.Noted(ctx, "poll", err)
}

// sync compares what runs with what should. Without the controller, it keeps up what was asked for last.
func (e *edge) sync(ctx context.Context) {
	err := e.deployer.Sync(ctx)
	if problem.KindOf(err) == problem.Unavailable {
		err = errors.Join(err, e.engine.Keep(ctx))
	}
	e.trouble.Noted(ctx, "sync", err)
}

// ServeHTTP answers /healthz: 200 while the agent works, with when the controller last answered and what is wrong.
func (e *edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.URL.Path != "/healthz" {
		http.NotFound(w, r)
		return
	}
	e.mu.Lock()
	polled := e.polled
	e.mu.Unlock()
	_, _ = fmt.Fprintf(w, "controller answered: %s\n", polled.UTC().Format(time.RFC3339))
	e.trouble.Write(w)
}

// wake answers POST /wake of the controller, which has the token of the file: the agent asks for work at once. Whoever else has
// the token can have it ask, and nothing more. Calls that come while it asks are one.
func (e *edge) wake(w http.ResponseWriter, r *http.Request) {
	token, err := os.ReadFile(e.o.WakeToken)
	want := strings.TrimSpace(string(token))
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/wake":
		http.NotFound(w, r)
		return
	case err != nil, want == "", !bearer, subtle.ConstantTimeCompare([]byte(given), []byte(want)) != 1:
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "who asks?", http.StatusUnauthorized)
		return
	}
	select {
	case e.woken <- struct{}{}:
	default:
	}
	w.WriteHeader(http.StatusAccepted)
}
