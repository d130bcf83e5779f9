package solve

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/swm/solve/pb"
)

// model is a request as a problem of placement, and what its parts are called in the request.
type model struct {
	problem   placement.Problem
	workloads []workload // of each component
	shift     []float64  // of each component: what was subtracted from its scores, which must not be negative
	channels  []*pb.Channel
	routes    []*route // of each channel that is fixed
	placed    []int    // of each other channel: its index in problem.Channels
	errors    []*pb.Error
}

// workload is one of an application.
type workload struct {
	*pb.Workload
	application string
}

func (w workload) id() string { return w.application + "/" + w.GetId() }

// route is where a channel goes; of nothing on one node.
type route struct{ network, path string }

// reader reads a request, and collects what is wrong with it.
type reader struct {
	model
	problem.Faults
	nodes map[string]int // by id: the index in problem.Nodes
	known map[string]int // workloads by id
	media map[[2]string]*network.Medium
	links map[[2]string]*network.Link // by network and id
	delay map[string]time.Duration    // of network nodes
}

// read makes a problem of a request. The error lists all that cannot be understood.
func read(r *pb.Request) (*model, Options, error) {
	var options Options
	d := reader{nodes: map[string]int{}, known: map[string]int{}, media: map[[2]string]*network.Medium{}, links: map[[2]string]*network.Link{}, delay: map[string]time.Duration{}}
	if text := r.GetOptions(); text != "" {
		if err := json.Unmarshal([]byte(text), &options); err != nil {
			d.Add("options", 0, "is no JSON: %v", err)
		}
	}
	if options.MigrationPenalty < 0 || math.IsNaN(options.MigrationPenalty) || options.Budget < 0 || options.Budget > placement.MaxBudget {
		d.Add("options", 0, "migrationPenalty must not be negative, budget from 0 to %d", placement.MaxBudget)
	}
	if r.GetModel().GetInfrastructure() == nil {
		d.Add("model.infrastructure", 0, "is required")
	}
	d.problem.MoveCost = options.MigrationPenalty
	d.readNodes(r.GetModel().GetInfrastructure())
	d.readNetworks(r.GetModel().GetInfrastructure())
	d.readWorkloads(r.GetModel().GetAppGroup())
	d.readScores(r.GetModel())
	d.readChannels(r.GetModel().GetAppGroup())
	return &d.model, options, d.Err("the request is not valid")
}

const (
	orchestrator = "swm"
	cluster      = "swm"
)

func target(node string) placement.Target {
	return placement.Target{Orchestrator: orchestrator, Cluster: cluster, Node: node}
}

func (d *reader) readNodes(in *pb.Infrastructure) {
	d.problem.Network = &network.Topology{}
	seen := map[string]bool{}
	for i, n := range in.GetNodes() {
		at := fmt.Sprintf("model.infrastructure.nodes[%d]", i)
		if n.GetId() == "" || seen[n.GetId()] {
			d.Add(at+".id", 0, "%q is empty, or that of another node", n.GetId())
			continue
		}
		seen[n.GetId()] = true
		d.amount(at+".CPU", n.GetCPU())
		d.amount(at+".memory", n.GetMemory())
		if n.GetNodeType() == pb.Node_NETWORK {
			d.problem.Network.Nodes = append(d.problem.Network.Nodes,
				network.Node{ID: n.GetId(), Kind: network.Forwarder, Latency: time.Duration(n.GetLatency())})
			continue
		}
		d.problem.Network.Nodes = append(d.problem.Network.Nodes, network.Node{ID: n.GetId()})
		node := placement.Node{
			Orchestrator: orchestrator, Cluster: cluster, Name: n.GetId(), Labels: map[string]string{},
			CPU: n.GetCPU().GetCapacity(), Memory: n.GetMemory().GetCapacity(),
			OtherCPU: n.GetCPU().GetUsed(), OtherMemory: n.GetMemory().GetUsed(),
		}
		for _, label := range n.GetLabels() {
			node.Labels[label] = ""
		}
		d.nodes[n.GetId()] = len(d.problem.Nodes)
		d.problem.Nodes = append(d.problem.Nodes, node)
	}
}

func (d *reader) amount(at string, r *pb.Resource) {
	if r.GetCapacity() < 0 || r.GetUsed() < 0 {
		d.Add(at, 0, "must not be negative")
	}
}

func (d *reader) readNetworks(in *pb.Infrastructure) {
	top := d.problem.Network
	for i, n := range in.GetNetworks() {
		made := network.Network{ID: n.GetId(), Class: class(n.GetQos()), Base: n.GetBearer()}
		for k, m := range n.GetMedia() {
			d.amount(fmt.Sprintf("model.infrastructure.networks[%d].media[%d].bandwidth", i, k), m.GetBandwidth())
			made.Media = append(made.Media, network.Medium{
				ID: m.GetId(), Bandwidth: m.GetBandwidth().GetCapacity(), Used: m.GetBandwidth().GetUsed(),
			})
		}
		for _, l := range n.GetLinks() {
			made.Links = append(made.Links, network.Link{
				ID: l.GetId(), Source: l.GetSource(), Target: l.GetTarget(), Medium: l.GetMedium(), Latency: time.Duration(l.GetLatency()),
			})
		}
		for _, p := range n.GetPaths() {
			made.Paths = append(made.Paths, network.Path{ID: p.GetId(), Links: p.GetLinks()})
		}
		top.Networks = append(top.Networks, made)
	}
	top.Check("model.infrastructure", &d.Faults)
	for i := range top.Networks {
		n := &top.Networks[i]
		for k := range n.Media {
			d.media[[2]string{n.ID, n.Media[k].ID}] = &n.Media[k]
		}
		for k := range n.Links {
			d.links[[2]string{n.ID, n.Links[k].ID}] = &n.Links[k]
		}
	}
	for _, n := range top.Nodes {
		d.delay[n.ID] = n.Latency
	}
}

func class(c pb.Network_ServiceClass) network.Class {
	if c == pb.Network_ASSURED {
		return network.Assured
	}
	return network.BestEffort
}

func (d *reader) readWorkloads(g *pb.ApplicationGroup) {
	for i, a := range g.GetApplications() {
		for k, w := range a.GetWorkloads() {
			at := fmt.Sprintf("model.app_group.applications[%d].workloads[%d]", i, k)
			one := workload{w, a.GetId()}
			if _, twice := d.known[one.id()]; twice || w.GetId() == "" {
				d.Add(at+".id", 0, "%q is empty, or that of another workload", w.GetId())
				continue
			}
			d.known[one.id()] = len(d.workloads)
			d.workloads = append(d.workloads, one)
			d.problem.Components = append(d.problem.Components, d.component(at, one))
		}
	}
	if len(d.workloads) == 0 {
		d.Add("model.app_group", 0, "has no workloads")
	}
}

func (d *reader) component(at string, w workload) placement.Component {
	c := placement.Component{ID: w.id(), CPU: int64(w.GetCPU()), Memory: w.GetMemory(), Labels: map[string][]string{}}
	if w.GetCPU() < 0 || w.GetMemory() < 0 {
		d.Add(at, 0, "CPU and memory must not be negative")
	}
	for _, label := range w.GetRequiredLabels() {
		c.Labels[label] = []string{""}
	}
	for _, node := range d.problem.Nodes {
		if slices.ContainsFunc(w.GetForbiddenLabels(), func(label string) bool { _, has := node.Labels[label]; return has }) {
			c.Excluded = append(c.Excluded, target(node.Name))
		}
	}
	if w.GetNode() == "" {
		if w.GetFixed() {
			d.Add(at+".fixed", 0, "needs a node")
		}
		return c
	}
	n, there := d.nodes[w.GetNode()]
	if !there {
		if w.GetFixed() {
			d.Add(at+".node", 0, "there is no compute node %q", w.GetNode())
		}
		return c // it has to leave a node that is no more
	}
	here := target(w.GetNode())
	c.Current = &here
	if w.GetFixed() {
		c.Targets = []placement.Target{here}
	}
	node := &d.problem.Nodes[n] // what the workload itself uses
	node.OtherCPU = max(0, node.OtherCPU-c.CPU)
	node.OtherMemory = max(0, node.OtherMemory-c.Memory)
	return c
}

// readScores makes scores of recommendations and costs. They must not be negative, so what is least for a workload counts as none.
func (d *reader) readScores(m *pb.Model) {
	rows := make([][]float64, len(d.workloads))
	for i := range rows {
		rows[i] = make([]float64, len(d.problem.Nodes))
	}
	for i, w := range m.GetRecommendations().GetWorkloads() {
		d.points(fmt.Sprintf("model.recommendations.workloads[%d]", i), rows, w.GetApplication()+"/"+w.GetWorkload(), w.GetNodes(), 1)
	}
	for i, w := range m.GetCosts().GetWorkloads() {
		d.points(fmt.Sprintf("model.costs.workloads[%d]", i), rows, w.GetApplication()+"/"+w.GetWorkload(), w.GetNodes(), -1)
	}
	d.problem.Scores, d.shift = rows, make([]float64, len(rows))
	for i, row := range rows {
		if len(row) == 0 {
			continue
		}
		d.shift[i] = slices.Min(row)
		for k := range row {
			row[k] -= d.shift[i]
		}
	}
}

func (d *reader) points(at string, rows [][]float64, id string, values []*pb.Value, sign float64) {
	row, known := d.known[id]
	if !known {
		d.Add(at, 0, "there is no workload %q", id)
		return
	}
	for k, v := range values {
		n, there := d.nodes[v.GetNode()]
		switch {
		case math.IsNaN(v.GetValue()) || math.IsInf(v.GetValue(), 0):
			d.Add(fmt.Sprintf("%s.nodes[%d].value", at, k), 0, "must be a number")
		case there: // a node that is no more costs nothing
			rows[row][n] += sign * v.GetValue()
		}
	}
}

func (d *reader) readChannels(g *pb.ApplicationGroup) {
	for i, c := range g.GetChannels() {
		at := fmt.Sprintf("model.app_group.channels[%d]", i)
		from, to := c.GetSourceApplication()+"/"+c.GetSourceWorkload(), c.GetTargetApplication()+"/"+c.GetTargetWorkload()
		for _, end := range []string{from, to} {
			if _, known := d.known[end]; !known {
				d.Add(at, 0, "there is no workload %q", end)
			}
		}
		if c.GetBandwidth() < 0 || c.GetLatency() < 0 {
			d.Add(at, 0, "bandwidth and latency must not be negative")
		}
		d.channels = append(d.channels, c)
		if c.GetFixed() {
			d.placed = append(d.placed, -1)
			d.routes = append(d.routes, d.fixed(at, c, from, to))
			continue
		}
		d.routes, d.placed = append(d.routes, nil), append(d.placed, len(d.problem.Channels))
		d.problem.Channels = append(d.problem.Channels, placement.Channel{
			ID: c.GetId(), From: from, To: to, Bandwidth: c.GetBandwidth(), MaxLatency: time.Duration(c.GetLatency()), Class: class(c.GetQos()),
		})
	}
}

// fixed keeps a channel on its path, and with it the workloads at its ends. Its bandwidth is taken from the media before others are placed.
func (d *reader) fixed(at string, c *pb.Channel, from, to string) *route {
	n := slices.IndexFunc(d.problem.Network.Networks, func(n network.Network) bool { return n.ID == c.GetNetwork() })
	if n < 0 {
		d.Add(at+".network", 0, "there is no network %q", c.GetNetwork())
		return &route{}
	}
	net := &d.problem.Network.Networks[n]
	p := slices.IndexFunc(net.Paths, func(p network.Path) bool { return p.ID == c.GetPath() })
	if p < 0 || len(net.Paths[p].Links) == 0 {
		d.Add(at+".path", 0, "network %q has no path %q", net.ID, c.GetPath())
		return &route{}
	}
	var latency time.Duration
	list := net.Paths[p].Links
	for i, id := range list {
		l := d.links[[2]string{net.ID, id}]
		if l == nil {
			return &route{} // the check of the network says so
		}
		latency += l.Latency
		if i > 0 {
			latency += d.delay[l.Source]
		}
		if medium := d.medium(net, l.Medium); medium != nil {
			if medium.Free() < c.GetBandwidth() {
				d.fail("bandwidth", "channel %s is fixed to path %s, whose medium %s has %d bit/s left of the %d that it needs",
					c.GetId(), c.GetPath(), medium.ID, medium.Free(), c.GetBandwidth())
			}
			medium.Used += c.GetBandwidth()
		}
	}
	if most := time.Duration(c.GetLatency()); most > 0 && latency > most {
		d.fail("latency", "channel %s is fixed to path %s, which takes %s, and allows %s", c.GetId(), c.GetPath(), latency, most)
	}
	if !net.Class.Serves(class(c.GetQos())) {
		d.fail("class", "channel %s is fixed to network %s, which is not of its class", c.GetId(), net.ID)
	}
	d.pin(from, d.links[[2]string{net.ID, list[0]}].Source)
	d.pin(to, d.links[[2]string{net.ID, list[len(list)-1]}].Target)
	return &route{net.ID, c.GetPath()}
}

// medium finds a medium of a network or of those below it.
func (d *reader) medium(n *network.Network, id string) *network.Medium {
	for n != nil {
		if m := d.media[[2]string{n.ID, id}]; m != nil {
			return m
		}
		base := n.Base
		at := slices.IndexFunc(d.problem.Network.Networks, func(o network.Network) bool { return o.ID == base && base != n.ID })
		if at < 0 {
			return nil
		}
		n = &d.problem.Network.Networks[at]
	}
	return nil
}

func (d *reader) pin(workload, node string) {
	if i, known := d.known[workload]; known {
		d.problem.Components[i].Targets = []placement.Target{target(node)}
	}
}

func (d *reader) fail(kind, format string, args ...any) {
	d.errors = append(d.errors, &pb.Error{Kind: kind, Details: fmt.Sprintf(format, args...)})
}
