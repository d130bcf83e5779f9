// Package host runs all of Littoral in one process on a laptop, from the YAML that a cluster would be given.
//
// It provides what a cluster has in place: a Postgres, a Prometheus, an OpenID Connect issuer, a Broker, cron, and a
// simulated fleet. Functions run unchanged, behind one base URL. State is in one directory, the home; after a kill -9
// of the host no acknowledged change is lost.
package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/types"

	"github.com/littoral-project/littoral/infra/runner/broker"
	"github.com/littoral-project/littoral/infra/runner/cron"
	"github.com/littoral-project/littoral/infra/runner/fleet"
	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/infra/runner/manifests"
	"github.com/littoral-project/littoral/infra/runner/mesh"
	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/infra/runner/watch"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/logs/files"
	"github.com/littoral-project/littoral/shared/migrate"
	"github.com/littoral-project/littoral/shared/observe"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/triggers"
)

// Options of a Host.
type Options struct {
	Addr     string // host:port to listen on
	Home     string // directory of all state; created if missing
	Fleet    string // FleetDefault, FleetNone, FleetGenerated with options, or a taxonomy file
	Leaf     string // program of the leaf exporter, which tells of this machine; "" = none
	Database string // URL of a Postgres to use instead of one in the home; "" = one in the home

	Registry map[string]function.Entry // by the part of an image after ko://
	Files    map[string]fs.FS          // the YAML by its path in the source tree, "/knative" and "/triggers"

	Settings settings.Lookup // of the user; nil = the environment of the process

	Log    *slog.Logger      // nil = slog.Default
	Notice func(text string) // called with a message for a person if the start takes long; may be nil

	tracer pgx.QueryTracer // of tests
}

// Special values of Options.
const (
	FleetDefault = "default"
	FleetNone    = "none"

	FleetGenerated = "generated:" // and options, such as nodes=500,seed=7
)

// overlay is the part of the YAML that the host builds.
const overlay = "/knative/overlays/laptop"

// audience is the audience of the laptop's tokens, unless OIDC_AUDIENCE is set.
const audience = "littoral"

// Host is a running host.
type Host struct {
	options  Options
	log      *slog.Logger
	url      string
	home     *home
	listener net.Listener
	settings own
	pace     time.Duration // of the fleet's telemetry; 0 = there is none

	postgres   *postgres
	prometheus *prometheus.Server
	issuer     *issuer.Issuer
	db         *store.DB
	broker     *broker.Broker
	objects    *watch.Store
	cron       *cron.Cron
	fleet      *fleet.Fleet
	mesh       *mesh.Mesh
	exporter   *observe.Exporter
	server     *http.Server

	stopping context.Context // of the host; streams end with it
	stop     func()

	failed chan error
	undo   []func(context.Context) error // run by Stop, last first
}

// Start starts everything and returns when requests are served. After an error nothing is left running.
func Start(ctx context.Context, o Options) (*Host, error) {
	h := &Host{options: o, log: cmp.Or(o.Log, slog.Default()), failed: make(chan error, 1)}
	h.stopping, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	if h.options.Settings == nil {
		h.options.Settings = os.LookupEnv
	}
	if h.options.Notice == nil {
		h.options.Notice = func(string) {}
	}
	if err := h.start(ctx); err != nil {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return nil, errors.Join(err, h.Stop(stopping))
	}
	return h, nil
}

// start does the quick checks first: YAML, home and port are checked before anything heavy runs.
func (h *Host) start(ctx context.Context) error {
	set, err := manifests.Load(h.options.Files, overlay)
	if err != nil {
		return err
	}
	services, err := h.resolve(set)
	if err != nil {
		return err
	}
	plan, err := fleetPlan(h.options.Fleet)
	if err != nil {
		return err
	}
	if h.home, err = openHome(h.options.Home); err != nil {
		return err
	}
	h.onStop(func(context.Context) error { return h.home.close() })
	if err := h.listen(ctx); err != nil {
		return err
	}
	if h.settings, err = h.readSettings(); err != nil {
		return err
	}
	if plan != nil {
		h.pace = cmp.Or(h.settings.FleetEvery, plan.Pace())
	}
	for _, step := range []func(context.Context) error{
		h.startPostgres,
		func(context.Context) error { return h.startPrometheus() },
		func(context.Context) error { return h.makeIssuer(plan) },
		func(context.Context) error { return h.makeFleet(plan) },
		func(ctx context.Context) error { return h.openBroker(ctx, set) },
		func(context.Context) error { return h.openObjects(set) },
		func(ctx context.Context) error { return h.serve(ctx, services) },
		h.writeTokens,
		func(context.Context) error { return h.writeAddress() },
		func(context.Context) error { return h.startRules() },
		func(ctx context.Context) error { return h.startCron(ctx, set) },
		func(context.Context) error { return h.startFleet(plan) },
		h.startLeaf,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// onStop adds a step to Stop, which runs the steps in reverse order.
func (h *Host) onStop(undo func(context.Context) error) { h.undo = append(h.undo, undo) }

// Stop drains and stops everything: the fleet, cron, HTTP, deliveries, Prometheus, Postgres. If ctx ends first, running
// work is cancelled; it is stored and continues after the next start.
func (h *Host) Stop(ctx context.Context) error {
	var errs []error
	for i := len(h.undo) - 1; i >= 0; i-- {
		errs = append(errs, h.undo[i](ctx))
	}
	h.undo = nil
	return errors.Join(errs...)
}

// URL is the base of all routes.
func (h *Host) URL() string { return h.url }

// Failed yields an error when the host can no longer work; it must be stopped then.
func (h *Host) Failed() <-chan error { return h.failed }

func (h *Host) fail(err error) {
	select {
	case h.failed <- err:
	default: // the first error is enough
	}
}

// listen opens the port before anything else is started, so that a port in use is found at once.
func (h *Host) listen(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", h.options.Addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use, perhaps by another littoral-up; stop that, or choose another address: "+
			"--addr 127.0.0.1:8081", h.options.Addr)
	case err != nil:
		return fmt.Errorf("listen on %s: %w", h.options.Addr, err)
	}
	h.listener = l
	h.onStop(func(context.Context) error {
		_ = l.Close() // the server closes it as well
		return nil
	})
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // if it listens on all addresses, this one is reachable
	}
	h.url = "http://" + net.JoinHostPort(host, port)
	return nil
}

func fleetPlan(fleetOption string) (*fleet.Plan, error) {
	switch fleetOption {
	case FleetNone:
		return nil, nil // no fleet is a choice
	case FleetDefault, "":
		return fleet.Default(), nil
	}
	if options, ok := strings.CutPrefix(fleetOption, FleetGenerated); ok {
		return fleet.Generated(options)
	}
	return fleet.Load(fleetOption)
}

// connections to Postgres that all functions share; the Broker has its own.
const connections = 24

// publishAtOnce is how many events all functions together may pass to the Broker at the same time.
const publishAtOnce = 16

func (h *Host) startPostgres(ctx context.Context) error {
	url := h.options.Database
	if url == "" {
		p, err := startPostgres(ctx, h.home, h.options.Notice, h.log, h.fail)
		if err != nil {
			return err
		}
		h.onStop(func(context.Context) error { return p.stop() })
		url = p.url
		h.postgres = p
	}
	if err := migrate.Up(ctx, url); err != nil {
		return err
	}
	h.settings.databaseURL = url
	return nil
}

func (h *Host) startPrometheus() (err error) {
	o := prometheus.Options{Dir: filepath.Join(h.home.dir, "prometheus"), Log: h.log}
	if h.pace > fleet.DefaultEvery { // a large fleet; rules query an hour
		o.Retention = 90 * time.Minute
	}
	h.prometheus, err = prometheus.Open(o)
	if err != nil {
		return err
	}
	h.onStop(func(context.Context) error { return h.prometheus.Close() })
	return nil
}

func (h *Host) makeIssuer(plan *fleet.Plan) (err error) {
	clients := append(issuer.People(), issuer.Client{ID: policyManager, Roles: []auth.Role{auth.Operator, auth.Controller}})
	if plan != nil {
		for _, id := range plan.AgentIDs() {
			clients = append(clients, issuer.AgentClient(id))
		}
	}
	h.issuer, err = issuer.New(issuer.Options{
		URL: h.url + issuerPath, Dir: filepath.Join(h.home.dir, "oidc"), Audience: h.settings.Auth.Audience,
		Clients: clients, Users: issuer.Users(), Console: sameHost(h.url),
	})
	if err != nil {
		return err
	}
	if h.settings.Auth.Issuer != h.url+issuerPath {
		h.log.Warn("OIDC_ISSUER names another issuer: the tokens in the home and those of the fleet will be refused",
			"issuer", h.settings.Auth.Issuer)
	}
	return h.writePasswords()
}

func (h *Host) openBroker(ctx context.Context, set *manifests.Set) (err error) {
	name, err := theBroker(set)
	if err != nil {
		return err
	}
	h.makeExporter() // before the Broker, so that its last deliveries are reported too
	h.mesh = mesh.New(http.DefaultTransport)
	h.broker, err = broker.Open(ctx, broker.Options{
		DatabaseURL: h.settings.databaseURL, Set: set, Client: &http.Client{Transport: h.mesh}, Log: h.log,
	})
	if err != nil {
		return err
	}
	h.onStop(func(context.Context) error {
		h.broker.Close()
		return nil
	})
	h.db, err = store.Open(ctx, store.Config{
		DatabaseURL: h.settings.databaseURL, MaxConns: connections, EventKey: h.settings.EventKey, PublishAtOnce: publishAtOnce,
	}, h.broker.Publisher(name), h.options.tracer)
	if err != nil {
		return err
	}
	h.onStop(h.closeStore)
	h.onStop(h.mesh.Wait)
	h.onStop(h.broker.Stop) // runs first, since its deliveries need the store
	return h.subscribe(ctx, set)
}

// subscribe stores who takes which events, as outbox/follow does on a cluster.
func (h *Host) subscribe(ctx context.Context, set *manifests.Set) error {
	var list []store.Subscription
	for _, key := range manifests.Sorted(set.Triggers) {
		spec := set.Triggers[key].Spec
		kinds, err := triggers.Takes(spec)
		if err != nil || spec.Subscriber.Ref == nil {
			h.log.Warn("nobody knows what a Trigger takes: if the Broker loses an event, it stays lost", "trigger", key, "error", err)
			continue
		}
		list = append(list, store.Subscriptions(spec.Subscriber.Ref.Name, kinds)...)
	}
	_, err := h.db.Subscribe(ctx, list)
	return err
}

// closeStore closes the store after the events in its outbox have been published; the Broker is still open then.
func (h *Host) closeStore(ctx context.Context) error {
	err := h.db.Flush(ctx)
	h.db.Close()
	return err
}

// theBroker returns the Broker that functions publish to; on a cluster a SinkBinding sets it.
func theBroker(set *manifests.Set) (types.NamespacedName, error) {
	names := manifests.Sorted(set.Brokers)
	if len(names) != 1 {
		return types.NamespacedName{}, fmt.Errorf("one Broker is needed for functions to publish to, there are %v", names)
	}
	return names[0], nil
}

func (h *Host) openObjects(set *manifests.Set) (err error) {
	h.objects, err = watch.Open(watch.Options{
		File: filepath.Join(h.home.dir, "objects.json"), Set: set, Client: &http.Client{Transport: h.mesh}, Log: h.log,
	})
	return err
}

func (h *Host) startCron(ctx context.Context, set *manifests.Set) (err error) {
	h.cron, err = cron.Start(ctx, cron.Options{Set: set, Client: &http.Client{Transport: h.mesh}, Log: h.log})
	if err != nil {
		return err
	}
	h.onStop(h.cron.Stop)
	return nil
}

func (h *Host) startFleet(plan *fleet.Plan) error {
	if plan == nil {
		return nil
	}
	b := newBackground()
	h.onStop(b.stop)
	b.run(func(ctx context.Context) {
		if err := h.fleet.Run(ctx); err != nil {
			h.fail(err)
		}
	})
	return nil
}

// agentClient sends an agent's requests with its own token, which it gets from the issuer like any OAuth client.
func (h *Host) agentClient(agentID string) *http.Client {
	c := h.issuer.Credentials(issuer.AgentClient(agentID).ID).Client(context.Background())
	c.Timeout = function.Outbound
	return c
}

func (h *Host) makeFleet(plan *fleet.Plan) (err error) {
	if plan == nil {
		return nil
	}
	var left []string
	if h.settings.Nuvla != "" {
		left = append(left, kinds.Nuvla)
	}
	h.fleet, err = fleet.New(fleet.Options{
		Left: left, Plan: plan, File: filepath.Join(h.home.dir, "fleet.json"), Append: h.prometheus.Append,
		Logs: files.New(files.Options{Dir: h.logsDir()}).Write,
		API:  h.url, Client: h.agentClient, Delay: h.settings.FleetDelay, Poll: h.settings.FleetPoll,
		Every: h.settings.FleetEvery, Log: h.log,
	})
	return err
}

// own are the settings that the host itself reads, with its own values as defaults.
type own struct {
	Auth      auth.Config
	EventKey  string `envconfig:"EVENT_KEY"`
	FormerKey string `envconfig:"EVENT_KEY_FORMER"`

	FleetDelay time.Duration `envconfig:"FLEET_DELAY" default:"700ms"` // from taking a job until it is Available
	FleetPoll  time.Duration `envconfig:"FLEET_POLL"`                  // between an agent's polls; 0 = the fleet's default
	FleetEvery time.Duration `envconfig:"FLEET_EVERY"`                 // between rounds of telemetry; 0 = the fleet's default

	Nuvla string `envconfig:"NUVLA_ENDPOINT"` // with it, the functions carry out its jobs

	databaseURL string
}
