package fleet

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/topology"
)

// Options of a Fleet. Plan, File and Append are required; without an API no agent works.
type Options struct {
	Plan *Plan
	File string // with the state, e.g. HOME/fleet.json

	// Append stores the measurements of the nodes, like prometheus.Server.
	Append func(context.Context, []prometheus.Sample) error

	// Logs stores what the pods write; nil = nobody reads it.
	Logs func(context.Context, []logs.Entry) error

	API    string                            // base URL of Littoral's public API
	Client func(agentID string) *http.Client // sends each request with the agent's token

	Every time.Duration // between two rounds of telemetry; 0 = Pace
	Poll  time.Duration // between two polls of an agent for work; 0 = DefaultPoll, or longer for many agents
	Delay time.Duration // from taking a job until it is Available; 0 = none

	Left []string // orchestrators whose jobs the agents leave to functions

	Log *slog.Logger     // nil = slog.Default()
	Now func() time.Time // nil = time.Now
}

// Defaults of Options, for a laptop. Real deployments use 60 s and 15 s (shared/docs/contracts.md §14).
const (
	DefaultEvery = 2 * time.Second
	DefaultPoll  = time.Second
)

// Pace is the time between two rounds of telemetry of a fleet of that size: a round of thousands of nodes takes a core for
// seconds, in the simulation and in Prometheus.
func (p *Plan) Pace() time.Duration {
	nodes := 0
	for _, c := range p.Clusters {
		nodes += len(c.Nodes)
	}
	return min(max(DefaultEvery, time.Duration(nodes)*4*time.Millisecond), slowestEvery)
}

// pollsApart is the time between two polls of a large fleet, whichever agents they are of.
const pollsApart = 50 * time.Millisecond

// slowestEvery is well below the default of STALE_AFTER.
const slowestEvery = 20 * time.Second

// syncEvery is the time between two reports of an agent on its copies, which also renew leases.
const syncEvery = 15 * time.Second

// Controller is the icos_controller_id of all telemetry.
const Controller = "littoral"

// Fleet is a running simulation.
type Fleet struct {
	options Options
	plan    *Plan
	log     *slog.Logger
	agents  map[string]*agent // by cluster name

	mu        sync.Mutex // guards the fields below
	state     *state
	schedules map[string]*schedule // by cluster name; cleared by a change
	writers   map[string]map[string]writer

	rounds sync.Mutex // one round of telemetry at a time
	series map[string]map[string]prometheus.Sample
}

// New loads the stored state of the fleet. Nothing runs before Run.
func New(o Options) (*Fleet, error) {
	if o.Plan == nil || o.File == "" || o.Append == nil {
		return nil, errors.New("fleet: a plan, a file and somewhere to append samples are needed")
	}
	fallback(&o.Every, o.Plan.Pace())
	fallback(&o.Poll, min(max(DefaultPoll, time.Duration(len(o.Plan.Clusters))*pollsApart), 5*DefaultPoll))
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s, err := loadState(o.File)
	if err != nil {
		return nil, err
	}
	s.complete(o.Plan, o.Now())
	f := &Fleet{
		options: o, plan: o.Plan, log: o.Log, state: s, schedules: map[string]*schedule{},
		writers: map[string]map[string]writer{}, agents: map[string]*agent{}, series: map[string]map[string]prometheus.Sample{},
	}
	for _, c := range f.plan.Clusters {
		if o.API != "" && !slices.Contains(o.Left, c.Type) {
			f.agents[c.Name] = newAgent(f, c)
		}
	}
	return f, nil
}

func fallback(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// Run emits telemetry at once and then every Options.Every, and runs the agents, until ctx ends. It returns when
// everything has stopped.
func (f *Fleet) Run(ctx context.Context) error {
	var all sync.WaitGroup
	all.Go(func() {
		each(ctx, f.options.Every, func() {
			if err := f.Emit(ctx); err != nil && ctx.Err() == nil {
				f.log.ErrorContext(ctx, "fleet telemetry failed", "error", err.Error())
			}
		})
	})
	for _, a := range f.agents {
		all.Go(func() { a.run(ctx) })
	}
	all.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.updateAndSave()
}

// each calls work immediately and then once per period, until ctx ends.
func each(ctx context.Context, period time.Duration, work func()) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for ctx.Err() == nil {
		work()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// change alters the state and stores it before anyone sees it. The counters of every node are brought up to date first,
// since the change affects how fast they grow. If storing fails, the change is kept in memory until the process ends.
func (f *Fleet) change(alter func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.update()
	alter()
	clear(f.schedules)
	return f.state.save(f.options.File, f.options.Now())
}

func (f *Fleet) updateAndSave() error {
	f.update()
	return f.state.save(f.options.File, f.options.Now())
}

func (f *Fleet) update() {
	now := f.options.Now()
	for _, c := range f.plan.Clusters {
		pods := f.schedule(c).pods
		for _, n := range c.Nodes {
			at := f.state.Nodes[c.Name+"/"+n.Name]
			at.Meter = at.Meter.at(now, f.settings(c, n).usage(n, pods[n.Name]))
		}
	}
}

// awake returns the nodes of a cluster that report; none if it is cut off. The first one runs the agent.
func (f *Fleet) awake(c *Cluster) []*Node {
	if f.state.Clusters[c.Name].Cut {
		return nil
	}
	var nodes []*Node
	for _, n := range c.Nodes {
		if !f.state.Nodes[c.Name+"/"+n.Name].Drained {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// cluster finds a cluster by its name, key or agent id, since targets use any of them; nil if there is none.
func (p *Plan) cluster(name string) *Cluster {
	for _, c := range p.Clusters {
		if c.is(name) {
			return c
		}
	}
	return nil
}

func (c *Cluster) is(name string) bool {
	return name != "" && (name == c.Name || name == c.Key || name == c.AgentID)
}

// node finds a node by its name; nil if there is none.
func (c *Cluster) node(name string) *Node {
	for _, n := range c.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

func (n *Node) docker() bool { return n.Engine == topology.Docker }

// hostName is the host name that ICOS collectors use.
func (c *Cluster) hostName(n *Node) string {
	return c.UUID[:min(8, len(c.UUID))] + ":" + n.Name
}
