package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/littoral-project/littoral/infra/runner/fleet"
	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/migrate"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/localpg"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/test/images"
	"github.com/littoral-project/littoral/test/inprocess"
	"github.com/littoral-project/littoral/triggers"
)

const audience = "littoral"

// world is what all sizes share: a durable Postgres, an issuer, a Broker that accepts everything, the programs.
type world struct {
	options  options
	dir      string
	server   *localpg.Server
	issuer   *issuer.Issuer
	oidc     string
	sink     string
	rules    string
	programs map[string]string // of the functions that run as processes, by name
	undo     []func()
}

func newWorld(ctx context.Context, o options) (w *world, err error) {
	w = &world{options: o}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.dir, err = os.MkdirTemp("", "littoral-continuum-"); err != nil {
		return w, err
	}
	w.undo = append(w.undo, func() { _ = os.RemoveAll(w.dir) })
	if err := os.Chmod(w.dir, 0o755); err != nil { // Postgres may run as another user
		return w, err
	}
	w.server, err = localpg.Start(ctx, localpg.Options{
		Dir: filepath.Join(w.dir, "pg"), Durable: true,
		Notice: func(text string) { fmt.Fprintln(os.Stderr, text) },
	})
	if err != nil {
		return w, err
	}
	w.undo = append(w.undo, func() {
		if err := w.server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	w.oidc, err = w.serve(ctx, func(base string) (http.Handler, error) {
		w.issuer, err = issuer.New(issuer.Options{
			URL: base + "/oidc", Dir: filepath.Join(w.dir, "oidc"), Audience: audience, Clients: issuer.People(),
		})
		if err != nil {
			return nil, err
		}
		return w.issuer.Handler(), nil
	})
	if err != nil {
		return w, err
	}
	w.oidc += "/oidc"
	w.sink, err = w.serve(ctx, func(string) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusAccepted)
		}), nil
	})
	if err != nil {
		return w, err
	}
	w.rules = filepath.Join(w.dir, "rules")
	if err := os.Mkdir(w.rules, 0o700); err != nil {
		return w, err
	}
	w.programs, err = images.Build(ctx, filepath.Join(w.dir, "bin"), func(name string) bool { return apart[name] })
	return w, err
}

func (w *world) close() {
	for i := len(w.undo) - 1; i >= 0; i-- {
		w.undo[i]()
	}
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

// continuum is one size: its telemetry, its database and all functions over it, in this process.
type continuum struct {
	world     *world
	fleet     *fleet.Fleet
	metrics   string
	database  string
	db        *store.DB
	broker    *inprocess.Broker
	url       string
	consumers map[string]http.Handler
	submitted bool
	tick      float64       // processor time of one look, in milliseconds
	ago       time.Duration // by which the fleet's clock is behind
}

// nodesPerCluster is a site's usual size; the number of clusters grows with the continuum.
const nodesPerCluster = 50

// nodeName is the name of the i-th node, with its cluster.
func nodeName(i int) string {
	cluster := fmt.Sprintf("site-%04d", i/nodesPerCluster)
	return fmt.Sprintf("%s/%s-n%02d", cluster, cluster, i%nodesPerCluster)
}

// plan writes a taxonomy with that many nodes of four kinds, and reads it as a fleet.
func (w *world) plan(nodes int) (*fleet.Plan, error) {
	t := topology.Taxonomy{Cluster: map[string]topology.Cluster{}}
	for i := range nodes {
		cluster, name, _ := strings.Cut(nodeName(i), "/")
		c, known := t.Cluster[cluster]
		if !known {
			c = topology.Cluster{
				Type: kinds.OCM, Name: cluster, AgentID: "agent-" + cluster, Engine: topology.Kubernetes,
				Node: map[string]topology.Node{},
			}
		}
		cores, arch := []float64{4, 8, 4, 16}[i%4], []string{"x86_64", "x86_64", "aarch64", "x86_64"}[i%4]
		n := topology.Node{
			Name: name, Engine: topology.Kubernetes,
			ScaScore: topology.Known(float64(50 + i*7%50)), Labels: map[string]string{"zone": fmt.Sprintf("z%d", i%10)},
			StaticMetrics: topology.StaticMetrics{
				CPUArchitecture: arch, CPUCores: topology.Known(cores), RAMMemory: topology.Known(cores * 2 * (1 << 30)),
			},
			DynamicMetrics: topology.DynamicMetrics{CPUUsagePercent: topology.Known(float64(5 + i*11%50))},
		}
		if i%10 == 0 {
			n.Devices = map[string]topology.Device{
				"video_0": {Name: "video_0", Path: "/dev/video0", Status: topology.DeviceAvailable},
			}
		}
		c.Node[n.Name] = n
		t.Cluster[cluster] = c
	}
	body, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(w.dir, fmt.Sprintf("fleet-%d-plan.json", nodes))
	if err := os.WriteFile(file, body, 0o600); err != nil {
		return nil, err
	}
	return fleet.Load(file)
}

func (w *world) newContinuum(ctx context.Context, nodes int) (*continuum, func(), error) {
	c := &continuum{world: w, ago: 2 * time.Minute}
	before := len(w.undo)
	end := func() {
		for i := len(w.undo) - 1; i >= before; i-- {
			w.undo[i]()
		}
		w.undo = w.undo[:before]
	}
	plan, err := w.plan(nodes)
	if err != nil {
		return nil, end, err
	}
	name := fmt.Sprintf("n%d", nodes)
	server, err := prometheus.Open(prometheus.Options{Dir: filepath.Join(w.dir, name)})
	if err != nil {
		return nil, end, err
	}
	w.undo = append(w.undo, func() { _ = server.Close() })
	if c.metrics, err = w.serve(ctx, func(string) (http.Handler, error) { return server.Handler(), nil }); err != nil {
		return nil, end, err
	}
	c.fleet, err = fleet.New(fleet.Options{
		Plan: plan, File: filepath.Join(w.dir, name+".json"), Append: server.Append, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Now().Add(-c.ago) },
	})
	if err != nil {
		return nil, end, err
	}
	if err := w.server.EnsureDatabase(ctx, name); err != nil {
		return nil, end, err
	}
	c.database = w.server.URL(name)
	if err := migrate.Up(ctx, c.database); err != nil {
		return nil, end, err
	}
	return c, end, c.mount(ctx)
}

// settings are what every function of a continuum reads. The deadline of the queries is out of the way unless that is
// what is varied: how long they take is measured here.
func (c *continuum) settings() map[string]string {
	return map[string]string{
		"PROMETHEUS_ADDRESS": c.metrics, "RULES_BACKEND": "files", "RULES_DIR": c.world.rules, "QUERY_TIMEOUT": c.world.options.queryTimeout.String(),
	}
}

func (c *continuum) mount(ctx context.Context) (err error) {
	if c.broker, err = inprocess.NewBroker(triggers.Files); err != nil {
		return err
	}
	c.db, err = store.Open(ctx, store.Config{DatabaseURL: c.database, MaxConns: 8}, c.broker, nil)
	if err != nil {
		return err
	}
	c.world.undo = append(c.world.undo, c.db.Close)
	verifier := auth.NewVerifier(auth.Config{Issuer: c.world.oidc, Audience: audience}, http.DefaultClient, nil)
	var routes http.Handler
	routes, c.consumers, err = inprocess.Mount(function.Platform{DB: c.db, Auth: verifier, Settings: settings.Map(c.settings())})
	if err != nil {
		return err
	}
	c.broker.Connect(c.consumers, true)
	c.url, err = c.world.serve(ctx, func(string) (http.Handler, error) { return routes, nil })
	return err
}

// begin gives telemetry some history: what has just begun to report is all new.
func (c *continuum) begin(ctx context.Context) error {
	for _, c.ago = range []time.Duration{2 * time.Minute, time.Minute, 0} {
		if err := c.fleet.Emit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// refresh makes telemetry and the picture new.
func (c *continuum) refresh(ctx context.Context) error {
	if err := c.fleet.Emit(ctx); err != nil {
		return err
	}
	if err := c.broker.TickOne(ctx, "aggregator-tick"); err != nil {
		return err
	}
	return c.db.Flush(ctx)
}

// post submits a descriptor and returns the application's id; it may be called concurrently.
func (c *continuum) post(ctx context.Context, descriptor []byte) (string, error) {
	answer, err := c.world.ask(ctx, http.MethodPost, c.url+"/jobmanager/groups", "operator", descriptor, nil)
	if err != nil {
		return "", err
	}
	var g struct {
		ID string `json:"id"`
	}
	return g.ID, json.Unmarshal(answer.body, &g)
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request as the client; anything but 2xx and 304 is an error.
func (w *world) ask(
	ctx context.Context, method, url, client string, body []byte, header map[string]string,
) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(string(body)))
	if err != nil {
		return answer{}, err
	}
	if client != "" {
		token, _, err := w.issuer.Token(ctx, client)
		if err != nil {
			return answer{}, err
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	if resp.StatusCode/100 != 2 && resp.StatusCode != http.StatusNotModified {
		return answer{}, fmt.Errorf("%s %s: %s: %.500s", method, url, resp.Status, got)
	}
	return answer{resp.StatusCode, resp.Header, got}, nil
}
