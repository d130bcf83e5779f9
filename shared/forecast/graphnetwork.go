package forecast

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
)

// STGNN is a graph convolution (Kipf, Welling 2017) in each step, whose features an LSTM of each node reads beside the node's own
// values. All nodes share their weights.
type STGNN struct{}

// Name implements GraphKind.
func (STGNN) Name() string { return "stgnn" }

// Decode implements GraphKind.
func (STGNN) Decode(data []byte) (GraphModel, error) { return decodedGraph(data, lstmGates) }

// Train implements GraphKind.
func (STGNN) Train(ctx context.Context, g Graph, o Options) (GraphModel, error) {
	return trainGraph(ctx, g, o, lstmGates)
}

// A3TGCN is the same with a GRU, of whose states attention weighs all (Bai et al. 2021), not the last one alone.
type A3TGCN struct{}

// Name implements GraphKind.
func (A3TGCN) Name() string { return "a3t-gcn" }

// Decode implements GraphKind.
func (A3TGCN) Decode(data []byte) (GraphModel, error) { return decodedGraph(data, gruGates) }

// Train implements GraphKind.
func (A3TGCN) Train(ctx context.Context, g Graph, o Options) (GraphModel, error) {
	return trainGraph(ctx, g, o, gruGates)
}

const (
	features      = 8 // of the graph convolution
	attentionSize = 8 // of the layer that weighs states
	graphBatches  = 400
	fewestBatches = 60
	graphRows     = 64 // windows of a batch, each of all nodes
	mostWork      = 16 // nodes times lags / 12 beyond which there are fewer batches: training takes time in proportion to both
)

// graphNetwork has weights that all nodes share, and scales of their own. Inputs are differences to the last lag, as in network, and
// it begins with the forecast that nothing changes.
type graphNetwork struct {
	Lags    int      `json:"lags"`
	Ahead   int      `json:"ahead"`
	Gates   int      `json:"gates"`
	Nodes   int      `json:"nodes"`
	Metrics int      `json:"metrics"`
	Links   [][2]int `json:"links"`
	Scales  []scale  `json:"scales"` // by series

	Mix     []float64 `json:"mix"` // the graph convolution: by feature, of each metric, and the constant
	Weights []float64 `json:"weights"`
	Look    []float64 `json:"look,omitempty"`  // attention: its layer, by unit, of each state, and the constant
	Weigh   []float64 `json:"weigh,omitempty"` // attention: of each unit, and a constant that changes nothing
	Head    []float64 `json:"head"`            // by metric and step ahead: of each state, and the constant
}

func (m *graphNetwork) attends() bool { return m.Gates == gruGates }

// sizes are the numbers of weights, in the order of parts.
func (m *graphNetwork) sizes() []int {
	look, weigh := 0, 0
	if m.attends() {
		look, weigh = attentionSize*(stateSize+1), attentionSize+1
	}
	return []int{features * (m.Metrics + 1), cellWeights(m.Gates, features+m.Metrics), look, weigh, m.Metrics * m.Ahead * (stateSize + 1)}
}

func (m *graphNetwork) parts() []*[]float64 {
	return []*[]float64{&m.Mix, &m.Weights, &m.Look, &m.Weigh, &m.Head}
}

func decodedGraph(data []byte, gates int) (GraphModel, error) {
	m := &graphNetwork{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("read the model: %w", err)
	}
	fits := m.Gates == gates && m.Lags >= 1 && m.Ahead >= 1 && m.Nodes >= 1 && m.Nodes <= MaxNodes && m.Metrics >= 1 && m.Metrics <= MaxMetrics &&
		len(m.Scales) == m.Nodes*m.Metrics
	for _, l := range m.Links {
		fits = fits && min(l[0], l[1]) >= 0 && max(l[0], l[1]) < m.Nodes
	}
	for i, size := range m.sizes() {
		fits = fits && len(*m.parts()[i]) == size
	}
	if !fits {
		return nil, fmt.Errorf("the model is no network of %d gates over a graph", gates)
	}
	return m, nil
}

func (m *graphNetwork) Needs() int { return m.Lags }

func (m *graphNetwork) Forecast(past [][]float64, horizon int) ([][]float64, error) {
	if err := checkHorizon(horizon); err != nil {
		return nil, err
	}
	if err := sameWidth(len(past), m.Nodes*m.Metrics); err != nil {
		return nil, err
	}
	seen := make([][]float64, len(past))
	for i, values := range past {
		if len(values) < m.Lags {
			return nil, short(len(values), m.Lags)
		}
		known, err := recent(values, m.Lags)
		if err != nil { // one node that is silent does not keep the others from being foreseen
			known = make([]float64, m.Lags)
		}
		seen[i] = known
	}
	run := newGraphPass(m)
	lags := make([][]float64, len(past))
	for len(seen[0]) < m.Lags+horizon { // beyond what it was trained for it goes on from its own forecasts
		for i, values := range seen {
			lags[i] = values[len(values)-m.Lags:]
		}
		run.forward(lags)
		for i := range seen {
			last := lags[i][m.Lags-1]
			for _, change := range run.change(i) {
				seen[i] = append(seen[i], last+m.Scales[i].from(change))
			}
		}
	}
	for i := range seen {
		seen[i] = seen[i][m.Lags : m.Lags+horizon]
	}
	return seen, nil
}

// neighbour is one with its share in the graph convolution.
type neighbour struct {
	node  int
	share float64
}

// neighbours are those of each node and itself, with 1 / (√|N(i)| √|N(j)|).
func neighbours(nodes int, links [][2]int) [][]neighbour {
	near := make([]map[int]bool, nodes)
	for i := range near {
		near[i] = map[int]bool{i: true}
	}
	for _, l := range links {
		near[l[0]][l[1]], near[l[1]][l[0]] = true, true
	}
	all := make([][]neighbour, nodes)
	for i := range all {
		for j := range nodes { // in the order of the nodes, so that sums are repeatable
			if near[i][j] {
				all[i] = append(all[i], neighbour{j, 1 / math.Sqrt(float64(len(near[i])*len(near[j])))})
			}
		}
	}
	return all
}

// seenNode is what the way back needs of a node.
type seenNode struct {
	way     *course
	mixed   [][]float64 // by step: the metrics of the neighbourhood
	looks   [][]float64 // attention: by step, its layer
	weights []float64   // attention: of each step
	context []float64   // attention: the weighed states
	out     []float64   // by metric and step ahead
}

// graphPass is one way through the network, with room for its intermediate values.
type graphPass struct {
	m     *graphNetwork
	near  [][]neighbour
	nodes []seenNode

	gradients          [][]float64 // of the parts
	dContext, dWeights []float64
	dLook, dFeatures   []float64
}

func newGraphPass(m *graphNetwork) *graphPass {
	p := &graphPass{m: m, near: neighbours(m.Nodes, m.Links), nodes: make([]seenNode, m.Nodes)}
	layer := &cells{gates: m.Gates, inputs: features + m.Metrics, weights: m.Weights}
	rows := func(n, size int) [][]float64 {
		list := make([][]float64, n)
		for i := range list {
			list[i] = make([]float64, size)
		}
		return list
	}
	for i := range p.nodes {
		p.nodes[i] = seenNode{way: newCourse(layer, m.Lags), mixed: rows(m.Lags, m.Metrics), out: make([]float64, m.Metrics*m.Ahead)}
		if m.attends() {
			p.nodes[i].looks, p.nodes[i].weights, p.nodes[i].context = rows(m.Lags, attentionSize), make([]float64, m.Lags), make([]float64, stateSize)
		}
	}
	return p
}

// learn makes room for gradients.
func (p *graphPass) learn() {
	for _, size := range p.m.sizes() {
		p.gradients = append(p.gradients, make([]float64, size))
	}
	p.nodes[0].way.gradient = p.gradients[1] // the layer is one for all nodes
	for i := range p.nodes {
		p.nodes[i].way.learn()
	}
	p.dContext, p.dWeights = make([]float64, stateSize), make([]float64, p.m.Lags)
	p.dLook, p.dFeatures = make([]float64, attentionSize), make([]float64, features)
}

// change is what forward found for a series, scaled.
func (p *graphPass) change(series int) []float64 {
	metric := series % p.m.Metrics
	return p.nodes[series/p.m.Metrics].out[metric*p.m.Ahead:][:p.m.Ahead]
}

// forward goes through the lags of all series.
func (p *graphPass) forward(lags [][]float64) {
	m := p.m
	for i := range p.nodes { // the node's own values
		for t := range m.Lags {
			x := p.nodes[i].way.steps[t+1].x[features:]
			for k := range x {
				series := i*m.Metrics + k
				x[k] = m.Scales[series].to(lags[series][t] - lags[series][m.Lags-1])
			}
		}
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		for t := range m.Lags {
			mixed := n.mixed[t]
			clear(mixed)
			for _, other := range p.near[i] {
				for k, v := range p.nodes[other.node].way.steps[t+1].x[features:] {
					mixed[k] += other.share * v
				}
			}
			into := n.way.steps[t+1].x[:features]
			read(into, m.Mix, mixed)
			for f, v := range into {
				into[f] = math.Tanh(v)
			}
			n.way.forward(t)
		}
		read(n.out, m.Head, p.attend(n))
	}
}

// attend returns what is read of a node's states: the last one, or all as attention weighs them.
func (p *graphPass) attend(n *seenNode) []float64 {
	m := p.m
	if !m.attends() {
		return n.way.steps[m.Lags].state
	}
	highest := math.Inf(-1)
	for t := range m.Lags {
		look := n.looks[t]
		read(look, m.Look, n.way.steps[t+1].state)
		for k, v := range look {
			look[k] = math.Tanh(v)
		}
		read(n.weights[t:t+1], m.Weigh, look)
		highest = max(highest, n.weights[t])
	}
	total := 0.0
	for t, v := range n.weights {
		n.weights[t] = math.Exp(v - highest)
		total += n.weights[t]
	}
	clear(n.context)
	for t := range n.weights {
		n.weights[t] /= total
		for c, v := range n.way.steps[t+1].state {
			n.context[c] += n.weights[t] * v
		}
	}
	return n.context
}

// backward adds the gradients of half the squared error of what forward found last. What is wanted is by series; NaN counts not.
func (p *graphPass) backward(wanted [][]float64) {
	m := p.m
	for i := range p.nodes {
		n := &p.nodes[i]
		for k := range m.Metrics {
			out := n.out[k*m.Ahead:][:m.Ahead]
			for h, want := range wanted[i*m.Metrics+k] {
				if out[h] -= want; !finite(out[h]) {
					out[h] = 0
				}
			}
		}
		if m.attends() {
			p.unattend(n)
		} else {
			end := &n.way.steps[m.Lags]
			unread(n.out, m.Head, p.gradients[4], end.state, end.missed)
		}
		n.way.backward()
		for t := range m.Lags {
			now := &n.way.steps[t+1]
			for f := range p.dFeatures {
				p.dFeatures[f] = now.wanted[f] * (1 - now.x[f]*now.x[f])
			}
			unread(p.dFeatures, m.Mix, p.gradients[0], n.mixed[t], nil)
		}
	}
}

// unattend takes what the outputs of a node miss back to all its states.
func (p *graphPass) unattend(n *seenNode) {
	m := p.m
	clear(p.dContext)
	unread(n.out, m.Head, p.gradients[4], n.context, p.dContext)
	average := 0.0
	for t, weight := range n.weights {
		p.dWeights[t] = 0
		now := &n.way.steps[t+1]
		for c, d := range p.dContext {
			p.dWeights[t] += d * now.state[c]
			now.missed[c] += d * weight
		}
		average += weight * p.dWeights[t]
	}
	for t, weight := range n.weights {
		miss := [1]float64{weight * (p.dWeights[t] - average)}
		clear(p.dLook)
		unread(miss[:], m.Weigh, p.gradients[3], n.looks[t], p.dLook)
		for k, v := range n.looks[t] {
			p.dLook[k] *= 1 - v*v
		}
		now := &n.way.steps[t+1]
		unread(p.dLook, m.Look, p.gradients[2], now.state, now.missed)
	}
}

func trainGraph(ctx context.Context, g Graph, o Options, gates int) (GraphModel, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	o = o.WithDefaults()
	windows := g.Len() - o.Lags - o.Horizon + 1
	if windows < fewestWindows {
		return nil, short(g.Len(), o.Lags+o.Horizon+fewestWindows-1)
	}
	m := &graphNetwork{Lags: o.Lags, Ahead: o.Horizon, Gates: gates, Nodes: len(g.Nodes), Metrics: len(g.Metrics), Links: g.Links}
	filled := make([][]float64, len(g.Values))
	for i, values := range g.Values {
		s := scaleOf(values)
		s.Mean = 0 // differences have none
		m.Scales = append(m.Scales, s)
		if filled[i] = closed(values); filled[i] == nil {
			filled[i] = make([]float64, len(values))
		}
	}
	random := rand.New(rand.NewPCG(o.Seed, 0x67726170686e6574+uint64(gates)))
	for i, size := range m.sizes() {
		*m.parts()[i] = make([]float64, size)
	}
	p := newGraphPass(m)
	p.learn()
	p.nodes[0].way.start(random)
	draw := func(weights []float64, inputs int) {
		for i := range weights {
			if i%(inputs+1) < inputs {
				weights[i] = (2*random.Float64() - 1) / math.Sqrt(float64(inputs))
			}
		}
	}
	draw(m.Mix, m.Metrics)
	draw(m.Look, stateSize)
	var layers []*adam
	for i, part := range m.parts() {
		layers = append(layers, newAdam(*part, p.gradients[i]))
	}
	lags, wanted := make([][]float64, len(g.Values)), make([][]float64, len(g.Values))
	for i := range wanted {
		wanted[i] = make([]float64, o.Horizon)
	}
	work := max(1, len(g.Nodes)*o.Lags/12)
	steps := max(fewestBatches, graphBatches*min(mostWork, work)/work)
	err := descend(ctx, steps, float64(graphRows*len(g.Nodes)), func() {
		for range graphRows {
			at := o.Lags + random.IntN(windows)
			for i := range lags {
				lags[i] = filled[i][at-o.Lags : at]
				for h, v := range g.Values[i][at : at+o.Horizon] {
					wanted[i][h] = m.Scales[i].to(v - lags[i][o.Lags-1])
				}
			}
			p.forward(lags)
			p.backward(wanted)
		}
	}, layers...)
	if err != nil {
		return nil, err
	}
	return m, nil
}
