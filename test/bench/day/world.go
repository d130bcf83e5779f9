package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/forecast"
	"github.com/littoral-project/littoral/shared/generator"
	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/placement"
)

const (
	step    = 5 * time.Minute
	perDay  = 288
	learned = 7 * perDay // steps before the day
	ahead   = 6          // steps that are foreseen: half an hour

	full    = 0.9   // of a node's cpu, from where what runs on it suffers
	thin    = 100e6 // bit/s of a link: the network of a site's edge, not of its core
	hunger  = 4     // how much more cpu components take than the generator's, so that nodes get full at all
	traffic = 4     // and how much more bandwidth
)

type options struct {
	Seed                       uint64
	Nodes, Applications, Steps int
}

// outcome is what came of a day. Violations are counted by component, or channel, and step.
type outcome struct {
	Seed      uint64  `json:"seed"`
	Forecasts bool    `json:"forecasts"`
	Full      int     `json:"full"`  // components on a full node
	Links     int     `json:"links"` // channels over a link that has too little left, or is down
	Down      int     `json:"down"`  // components on a node that has failed
	Moves     int     `json:"moves"`
	Plans     int     `json:"plans"`
	KWh       float64 `json:"kWh"` // that the applications draw
}

// Violations are all of them.
func (o outcome) Violations() int { return o.Full + o.Links + o.Down }

// world is one with what is measured in it before and on the day. What applications do does not change what others do.
type world struct {
	*generator.World
	o     options
	cpu   [][]float64 // by node: share that others use
	up    [][]bool
	link  [][]float64 // by link: share that others use; 1 if it is down
	seen  [2][]forecast.Model
	kinds map[string]int // how often each kind was chosen

	components []component
	channels   []channel
}

type component struct {
	id, application string
	cpu             int64
}

type channel struct {
	id        string
	from, to  int // components
	bandwidth int64
	delay     time.Duration
}

func prepare(ctx context.Context, o options) (*world, error) {
	options := generator.Default()
	options.Seed, options.Nodes, options.Applications, options.Users, options.Clusters = o.Seed, o.Nodes, o.Applications, 0, 2
	g, err := generator.New(options)
	if err != nil {
		return nil, err
	}
	w := &world{o: o, World: g, kinds: map[string]int{}}
	w.cpu, w.up, w.link = make([][]float64, len(g.Nodes)), make([][]bool, len(g.Nodes)), make([][]float64, len(g.Links))
	for s, more := g.Run(time.Duration(learned+o.Steps)*step, step), true; more; more = s.Next() {
		for i, n := range g.Nodes {
			cpu, _, _ := s.Load(n)
			w.cpu[i], w.up[i] = append(w.cpu[i], cpu), append(w.up[i], cpu > 0)
		}
		for i, l := range g.Links {
			used, _, down := s.Used(l)
			if down {
				used = 1
			}
			w.link[i] = append(w.link[i], used)
		}
	}
	for i, list := range [2][][]float64{w.cpu, w.link} {
		for _, values := range list {
			m, err := w.train(ctx, values[:learned])
			if err != nil {
				return nil, err
			}
			w.seen[i] = append(w.seen[i], m)
		}
	}
	for _, a := range g.Applications {
		first := len(w.components)
		for _, s := range a.Services {
			w.components = append(w.components, component{a.Name + "/" + s.Name, a.Name, int64(s.CPU) * hunger})
		}
		for _, c := range a.Channels {
			w.channels = append(w.channels, channel{a.Name + "/" + c.Name, first + c.From, first + c.To, int64(c.Bandwidth) * 1e6 * traffic, c.Delay})
		}
	}
	return w, nil
}

// train is what a pipeline does.
func (w *world) train(ctx context.Context, values []float64) (forecast.Model, error) {
	s := forecast.Series{Start: w.World.Options.Start, Step: step, Values: values}
	o := forecast.Options{Horizon: ahead, Seed: w.o.Seed}
	verdicts, err := forecast.Compare(ctx, s, o, 0.95, forecast.LastValue{}, forecast.Yesterday{}, forecast.HoltWinters{}, forecast.Ridge{})
	if err != nil {
		return nil, err
	}
	best := forecast.Best(verdicts)
	if best == nil {
		return nil, fmt.Errorf("no kind can be trained: %w", verdicts[0].Err)
	}
	w.kinds[best.Kind]++
	return best.Model, nil
}

// expected is the most that a series has now and, if that is asked for, within half an hour as it is foreseen.
func expected(m forecast.Model, values []float64, at int, foreseeing bool) (float64, error) {
	now := values[at]
	if !foreseeing {
		return now, nil
	}
	next, err := m.Forecast(values[:at+1], ahead)
	if err != nil {
		return 0, err
	}
	return min(max(now, slices.Max(next)), 1), nil
}

// state is where everything is.
type state struct {
	place []int   // node of each component; -1: none yet
	route [][]int // links of each channel; nil on one node
}

// live goes through the day.
func (w *world) live(ctx context.Context, foreseeing bool) (outcome, error) {
	out := outcome{Seed: w.o.Seed, Forecasts: foreseeing}
	at := state{place: slices.Repeat([]int{-1}, len(w.components)), route: make([][]int, len(w.channels))}
	first, err := w.plan(&at, learned-1, foreseeing, func(string) bool { return true })
	if err != nil {
		return out, err
	}
	at = *first
	for t := learned; t < learned+w.o.Steps; t++ {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		w.suffer(&at, t, &out)
		troubled, err := w.troubled(&at, t, foreseeing)
		if err != nil {
			return out, err
		}
		if len(troubled) == 0 {
			continue
		}
		next, err := w.plan(&at, t, foreseeing, func(application string) bool { return troubled[application] })
		if err != nil {
			return out, err
		}
		out.Plans++
		for i := range next.place {
			if next.place[i] != at.place[i] {
				out.Moves++
			}
		}
		at = *next
	}
	return out, nil
}

// loads are what each node and link have to carry with what is ours, as shares.
func (w *world) loads(at *state, cpu, link func(i int) float64) (nodes, links []float64) {
	nodes, links = make([]float64, len(w.Nodes)), make([]float64, len(w.Links))
	for i := range nodes {
		nodes[i] = cpu(i)
	}
	for i := range links {
		links[i] = link(i)
	}
	for i, c := range w.components {
		if n := at.place[i]; n >= 0 {
			nodes[n] += float64(c.cpu) / float64(1000*w.Nodes[n].Cores)
		}
	}
	for i, c := range w.channels {
		for _, l := range at.route[i] {
			links[l] += float64(c.bandwidth) / thin
		}
	}
	return nodes, links
}

// suffer counts what goes wrong in a step, and what is drawn.
func (w *world) suffer(at *state, t int, out *outcome) {
	nodes, links := w.loads(at, func(i int) float64 { return w.cpu[i][t] }, func(i int) float64 { return w.link[i][t] })
	for i, c := range w.components {
		n := at.place[i]
		switch {
		case n < 0 || !w.up[n][t]:
			out.Down++
			continue
		case nodes[n] > full:
			out.Full++
		}
		node := w.Nodes[n]
		out.KWh += (node.Peak - node.Idle) * float64(c.cpu) / float64(1000*node.Cores) * step.Hours() / 1000
	}
	for i := range w.channels {
		if slices.ContainsFunc(at.route[i], func(l int) bool { return links[l] > 1 }) {
			out.Links++
		}
	}
}

// troubled are the applications with something on a node or link that has too little, now or as foreseen.
func (w *world) troubled(at *state, t int, foreseeing bool) (map[string]bool, error) {
	var failed error
	expect := func(m []forecast.Model, values [][]float64) func(i int) float64 {
		return func(i int) float64 {
			v, err := expected(m[i], values[i], t, foreseeing)
			if err != nil {
				failed = err
			}
			return v
		}
	}
	nodes, links := w.loads(at, expect(w.seen[0], w.cpu), expect(w.seen[1], w.link))
	troubled := map[string]bool{}
	for i, c := range w.components {
		if n := at.place[i]; n < 0 || !w.up[n][t] || nodes[n] > full {
			troubled[c.application] = true
		}
	}
	for i, c := range w.channels {
		if slices.ContainsFunc(at.route[i], func(l int) bool { return links[l] > 1 }) {
			troubled[w.components[c.from].application] = true
		}
	}
	return troubled, failed
}

// plan places the applications that are wanted; the others hold what they have. What finds no place stays where it is.
func (w *world) plan(at *state, t int, foreseeing bool, wanted func(application string) bool) (*state, error) {
	p := placement.Problem{Weights: placement.Weights{Performance: 1, Energy: 1}}
	net := network.Network{ID: "edge"}
	topology := &network.Topology{}
	held := slices.Clone(at.place)
	for i, c := range w.components {
		if wanted(c.application) {
			held[i] = -1
		}
	}
	used := make([]int64, len(w.Links))
	for i, c := range w.channels {
		if !wanted(w.components[c.from].application) {
			for _, l := range at.route[i] {
				used[l] += c.bandwidth
			}
		}
	}
	for i, n := range w.Nodes {
		share, err := expected(w.seen[0][i], w.cpu[i], t, foreseeing)
		if err != nil {
			return nil, err
		}
		draws := n.Idle + (n.Peak-n.Idle)*share
		node := placement.Node{
			Orchestrator: "ocm", Cluster: n.Cluster.Name, Name: n.Name, CPU: int64(full * 1000 * float64(n.Cores)), Memory: n.Memory,
			OtherCPU: int64(math.Ceil(share * 1000 * float64(n.Cores))), EnergyWatts: &draws, CPUUsage: share, Unschedulable: !w.up[i][t],
		}
		for j, c := range w.components {
			if held[j] == i {
				node.Reserved = append(node.Reserved, placement.Reservation{Holder: c.id, CPU: c.cpu})
			}
		}
		p.Nodes = append(p.Nodes, node)
		topology.Nodes = append(topology.Nodes, network.Node{ID: n.Name})
	}
	for i, l := range w.Links {
		share, err := expected(w.seen[1][i], w.link[i], t, foreseeing)
		if err != nil {
			return nil, err
		}
		id := strconv.Itoa(i)
		net.Media = append(net.Media, network.Medium{ID: id, Bandwidth: thin, Used: min(int64(share*thin)+used[i], thin)})
		net.Links = append(
			net.Links,
			network.Link{ID: id + ">", Source: l.A.Name, Target: l.B.Name, Medium: id, Latency: l.Latency},
			network.Link{ID: id + "<", Source: l.B.Name, Target: l.A.Name, Medium: id, Latency: l.Latency},
		)
	}
	topology.Networks = []network.Network{net}
	p.Network = topology
	for i, c := range w.components {
		if !wanted(c.application) {
			continue
		}
		one := placement.Component{ID: c.id, CPU: c.cpu}
		if n := at.place[i]; n >= 0 {
			here := p.Nodes[n].Target()
			one.Current = &here
		}
		p.Components = append(p.Components, one)
	}
	for _, c := range w.channels {
		if wanted(w.components[c.from].application) {
			p.Channels = append(p.Channels, placement.Channel{
				ID: c.id, From: w.components[c.from].id, To: w.components[c.to].id, Bandwidth: c.bandwidth, MaxLatency: c.delay,
			})
		}
	}
	made, err := placement.Place(p)
	if err != nil {
		return nil, err
	}
	return w.after(at, made)
}

// after is the state that a plan leads to.
func (w *world) after(at *state, made placement.Plan) (*state, error) {
	next := &state{place: slices.Clone(at.place), route: slices.Clone(at.route)}
	for _, a := range made.Assignments {
		if a.Placed {
			i := slices.IndexFunc(w.components, func(c component) bool { return c.id == a.Component })
			next.place[i] = slices.IndexFunc(w.Nodes, func(n *generator.Node) bool { return n.Name == a.Target.Node })
		}
	}
	for _, a := range made.Channels {
		if !a.Routed {
			continue
		}
		i := slices.IndexFunc(w.channels, func(c channel) bool { return c.id == a.Channel })
		next.route[i] = nil
		if a.Loopback {
			continue
		}
		for link := range strings.SplitSeq(a.Path, ",") {
			l, err := strconv.Atoi(strings.TrimRight(link, "<>"))
			if err != nil {
				return nil, fmt.Errorf("a path has the link %q: %w", link, err)
			}
			next.route[i] = append(next.route[i], l)
		}
	}
	return next, nil
}
