package forecast

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
)

// LSTM is a network of long short-term memory cells (Hochreiter, Schmidhuber 1997) that reads the lags one after the other and
// answers with all steps ahead at once. It is our own, in plain Go and in one order of sums, so that the same seed gives the same
// bits, and so that no function links a library of tensors to read a model of some thousand numbers.
type LSTM struct{}

// Name implements Kind.
func (LSTM) Name() string { return "lstm" }

// Decode implements Kind.
func (LSTM) Decode(data []byte) (Model, error) { return decodedNetwork(data, lstmGates) }

// Train implements Kind.
func (LSTM) Train(ctx context.Context, s Series, o Options) (Model, error) {
	return trainNetwork(ctx, s, o, lstmGates)
}

// GRU is the same with gated recurrent units (Cho et al. 2014), which have three gates instead of four and no memory beside the
// state.
type GRU struct{}

// Name implements Kind.
func (GRU) Name() string { return "gru" }

// Decode implements Kind.
func (GRU) Decode(data []byte) (Model, error) { return decodedNetwork(data, gruGates) }

// Train implements Kind.
func (GRU) Train(ctx context.Context, s Series, o Options) (Model, error) {
	return trainNetwork(ctx, s, o, gruGates)
}

const (
	lstmGates = 4 // input, forget, candidate, output
	gruGates  = 3 // update, reset, candidate

	stateSize  = 16
	batches    = 400
	batchRows  = 32
	mostLags   = 96   // beyond these, fewer batches: training takes time in proportion to both
	stepSize   = 0.01 // of Adam, at the beginning; it falls to a tenth
	longestWay = 1.0  // of the gradient, by its norm
)

// network is a layer of cells and a linear one that reads its last state. Inputs are differences to the last lag, so that a shift
// of the whole series changes nothing.
type network struct {
	Lags    int       `json:"lags"`
	Ahead   int       `json:"ahead"`
	Gates   int       `json:"gates"`
	Scale   scale     `json:"scale"`
	Weights []float64 `json:"weights"` // by gate and cell: of the input, of each state, and the constant
	Head    []float64 `json:"head"`    // by step ahead: of each state, and the constant
}

func decodedNetwork(data []byte, gates int) (Model, error) {
	m, err := decoded[*network](data)
	if err != nil {
		return nil, err
	}
	n, ok := m.(*network)
	if !ok || n == nil || n.Gates != gates || n.Lags < 1 || n.Ahead < 1 || len(n.Weights) != cellWeights(gates, 1) ||
		len(n.Head) != n.Ahead*(stateSize+1) {
		return nil, fmt.Errorf("the model is no network of %d gates", gates)
	}
	return n, nil
}

func (m *network) Needs() int { return m.Lags }

func (m *network) Forecast(past []float64, horizon int) ([]float64, error) {
	run := newPass(m)
	return rolled(past, m.Lags, horizon, func(lags []float64) []float64 {
		last := lags[len(lags)-1]
		next := make([]float64, m.Ahead)
		for h, change := range run.forward(lags) {
			next[h] = last + m.Scale.from(change)
		}
		return next
	})
}

// cells are a recurrent layer: an LSTM's or a GRU's, by the number of their gates.
type cells struct {
	gates, inputs     int
	weights, gradient []float64 // by gate and cell: of each input, of each state, and the constant
}

func (c *cells) rowSize() int { return c.inputs + stateSize + 1 }

// cellWeights is how many weights a layer of cells has.
func cellWeights(gates, inputs int) int { return gates * stateSize * (inputs + stateSize + 1) }

// start draws the first weights.
func (c *cells) start(random *rand.Rand) {
	size := c.rowSize()
	for i := range c.weights {
		if i%size < size-1 {
			c.weights[i] = (2*random.Float64() - 1) / math.Sqrt(stateSize)
		} else if c.gates == lstmGates && i/size/stateSize == 1 {
			c.weights[i] = 1 // a cell remembers until it has learnt to forget
		}
	}
}

// moment is what the way back needs of one step through the lags.
type moment struct {
	x      []float64 // the inputs
	gates  []float64 // after their functions, by gate and cell
	state  []float64
	memory []float64 // of an LSTM
	damped []float64 // of a GRU: the state before, as far as the reset gate lets it through

	missed []float64 // gradient of the state by what reads it, other than the next step; who reads it adds to it
	wanted []float64 // gradient of the inputs, once gone back
}

// course is one way through a layer of cells, with room for its intermediate values.
type course struct {
	*cells
	steps []moment // the first is before any lag

	dState, dMemory, dSum []float64
	before, dDamped       []float64
}

func newCourse(c *cells, lags int) *course {
	p := &course{cells: c, steps: make([]moment, lags+1)}
	for i := range p.steps {
		room := make([]float64, (c.gates+4)*stateSize+2*c.inputs)
		cut := func(n int) []float64 {
			part := room[:n:n]
			room = room[n:]
			return part
		}
		p.steps[i] = moment{
			x: cut(c.inputs), gates: cut(c.gates * stateSize), state: cut(stateSize), memory: cut(stateSize), damped: cut(stateSize),
			missed: cut(stateSize), wanted: cut(c.inputs),
		}
	}
	return p
}

func sigmoid(v float64) float64 { return 1 / (1 + math.Exp(-v)) }

// sum is what reaches a cell's gate.
func (p *course) sum(gate, cell int, x, state []float64) float64 {
	size := p.rowSize()
	row := p.weights[(gate*stateSize+cell)*size:][:size]
	total := row[size-1]
	for k, v := range x {
		total += row[k] * v
	}
	row = row[len(x):]
	for k, v := range state {
		total += row[k] * v
	}
	return total
}

// forward makes the step t, from 0, whose inputs are in steps[t+1].x.
func (p *course) forward(t int) {
	was, now := &p.steps[t], &p.steps[t+1]
	if p.gates == lstmGates {
		p.remember(was, now)
	} else {
		p.update(was, now)
	}
}

func (p *course) remember(was, now *moment) {
	for c := range stateSize {
		in, forget := sigmoid(p.sum(0, c, now.x, was.state)), sigmoid(p.sum(1, c, now.x, was.state))
		candidate, out := math.Tanh(p.sum(2, c, now.x, was.state)), sigmoid(p.sum(3, c, now.x, was.state))
		now.gates[c], now.gates[stateSize+c], now.gates[2*stateSize+c], now.gates[3*stateSize+c] = in, forget, candidate, out
		now.memory[c] = forget*was.memory[c] + in*candidate
		now.state[c] = out * math.Tanh(now.memory[c])
	}
}

func (p *course) update(was, now *moment) {
	for c := range stateSize {
		now.gates[c], now.gates[stateSize+c] = sigmoid(p.sum(0, c, now.x, was.state)), sigmoid(p.sum(1, c, now.x, was.state))
		now.damped[c] = now.gates[stateSize+c] * was.state[c]
	}
	for c := range stateSize {
		keep, candidate := now.gates[c], math.Tanh(p.sum(2, c, now.x, now.damped))
		now.gates[2*stateSize+c] = candidate
		now.state[c] = (1-keep)*candidate + keep*was.state[c]
	}
}

// learn makes room for the way back.
func (p *course) learn() {
	p.dState, p.dMemory, p.dDamped = make([]float64, stateSize), make([]float64, stateSize), make([]float64, stateSize)
	p.dSum, p.before = make([]float64, p.gates*stateSize), make([]float64, stateSize)
}

// backward takes what each state missed all the way back: it adds to the gradients of the weights, and finds those of the inputs.
func (p *course) backward() {
	clear(p.dState)
	clear(p.dMemory)
	for t := len(p.steps) - 1; t > 0; t-- {
		was, now := &p.steps[t-1], &p.steps[t]
		for c, miss := range now.missed {
			p.dState[c] += miss
		}
		clear(now.missed)
		clear(now.wanted)
		clear(p.before)
		if p.gates == lstmGates {
			p.recall(was, now)
			p.spread(0, lstmGates, now, was.state, p.before)
		} else {
			p.revert(was, now)
		}
		p.dState, p.before = p.before, p.dState
	}
}

// recall finds what each sum of an LSTM's step contributed.
func (p *course) recall(was, now *moment) {
	for c := range stateSize {
		in, forget, candidate, out := now.gates[c], now.gates[stateSize+c], now.gates[2*stateSize+c], now.gates[3*stateSize+c]
		bent := math.Tanh(now.memory[c])
		memory := p.dMemory[c] + p.dState[c]*out*(1-bent*bent)
		p.dSum[c] = memory * candidate * in * (1 - in)
		p.dSum[stateSize+c] = memory * was.memory[c] * forget * (1 - forget)
		p.dSum[2*stateSize+c] = memory * in * (1 - candidate*candidate)
		p.dSum[3*stateSize+c] = p.dState[c] * bent * out * (1 - out)
		p.dMemory[c] = memory * forget
	}
}

// revert does the same for a GRU, and passes it on.
func (p *course) revert(was, now *moment) {
	for c := range stateSize {
		keep, candidate := now.gates[c], now.gates[2*stateSize+c]
		p.dSum[c] = p.dState[c] * (was.state[c] - candidate) * keep * (1 - keep)
		p.dSum[2*stateSize+c] = p.dState[c] * (1 - keep) * (1 - candidate*candidate)
		p.before[c] = p.dState[c] * keep
	}
	clear(p.dDamped)
	p.spread(2, 3, now, now.damped, p.dDamped)
	for c, d := range p.dDamped {
		reset := now.gates[stateSize+c]
		p.before[c] += d * reset
		p.dSum[stateSize+c] = d * was.state[c] * reset * (1 - reset)
	}
	p.spread(0, 2, now, was.state, p.before)
}

// spread adds the gradients of the weights of some gates, of the inputs, and of the state that they read.
func (p *course) spread(from, to int, now *moment, state, into []float64) {
	size := p.rowSize()
	for at := from * stateSize; at < to*stateSize; at++ {
		d := p.dSum[at]
		row, grow := p.weights[at*size:][:size], p.gradient[at*size:][:size]
		grow[size-1] += d
		for k, v := range now.x {
			grow[k] += d * v
			now.wanted[k] += d * row[k]
		}
		row, grow = row[len(now.x):], grow[len(now.x):]
		for k, v := range state {
			grow[k] += d * v
			into[k] += d * row[k]
		}
	}
}

// pass is one way through the network.
type pass struct {
	m    *network
	way  *course
	out  []float64
	head []float64 // gradient
}

func newPass(m *network) *pass {
	return &pass{m: m, way: newCourse(&cells{gates: m.Gates, inputs: 1, weights: m.Weights}, m.Lags), out: make([]float64, m.Ahead)}
}

// forward returns the changes ahead, scaled, in a slice that the next call overwrites.
func (p *pass) forward(lags []float64) []float64 {
	last := lags[len(lags)-1]
	for t, lag := range lags {
		p.way.steps[t+1].x[0] = p.m.Scale.to(lag - last)
		p.way.forward(t)
	}
	read(p.out, p.m.Head, p.way.steps[len(lags)].state)
	return p.out
}

// read is a linear layer: out by its rows of weights, each of all inputs and the constant.
func read(out, weights, inputs []float64) {
	for h := range out {
		row := weights[h*(len(inputs)+1):][:len(inputs)+1]
		total := row[len(inputs)]
		for k, v := range inputs {
			total += row[k] * v
		}
		out[h] = total
	}
}

// unread takes what its outputs miss back through a linear layer: to the gradients of its weights and of its inputs, if they have any.
func unread(miss, weights, gradient, inputs, into []float64) {
	for h, d := range miss {
		row, grow := weights[h*(len(inputs)+1):][:len(inputs)+1], gradient[h*(len(inputs)+1):][:len(inputs)+1]
		for k, v := range inputs {
			grow[k] += d * v
			if into != nil {
				into[k] += d * row[k]
			}
		}
		grow[len(inputs)] += d
	}
}

// learn makes room for gradients.
func (p *pass) learn() {
	p.way.gradient, p.head = make([]float64, len(p.m.Weights)), make([]float64, len(p.m.Head))
	p.way.learn()
}

// backward adds the gradients of half the squared error of what forward returned last.
func (p *pass) backward(wanted []float64) {
	for h, want := range wanted {
		p.out[h] -= want
	}
	end := &p.way.steps[p.m.Lags]
	unread(p.out, p.m.Head, p.head, end.state, end.missed)
	p.way.backward()
}

// adam moves weights against their gradients (Kingma, Ba 2015).
type adam struct {
	weights, gradient, mean, square []float64
}

func newAdam(weights, gradient []float64) *adam {
	return &adam{weights, gradient, make([]float64, len(weights)), make([]float64, len(weights))}
}

func (a *adam) move(step int, size, factor float64) {
	const keepMean, keepSquare = 0.9, 0.999
	unbiasMean, unbiasSquare := 1-math.Pow(keepMean, float64(step)), 1-math.Pow(keepSquare, float64(step))
	for i := range a.weights {
		g := a.gradient[i] * factor
		a.mean[i] = keepMean*a.mean[i] + (1-keepMean)*g
		a.square[i] = keepSquare*a.square[i] + (1-keepSquare)*g*g
		a.weights[i] -= size * (a.mean[i] / unbiasMean) / (math.Sqrt(a.square[i]/unbiasSquare) + 1e-8)
	}
	clear(a.gradient)
}

func trainNetwork(ctx context.Context, s Series, o Options, gates int) (Model, error) {
	o = o.WithDefaults()
	w := windowsOf(s.Values, o)
	if len(w.lags) < fewestWindows {
		return nil, short(len(s.Values), o.Lags+o.Horizon+fewestWindows-1)
	}
	m := &network{Lags: o.Lags, Ahead: o.Horizon, Gates: gates, Scale: scaleOf(s.Values)}
	m.Scale.Mean = 0                                                                                     // differences have none
	m.Weights, m.Head = make([]float64, cellWeights(gates, 1)), make([]float64, o.Horizon*(stateSize+1)) // nothing changes, at first
	random := rand.New(rand.NewPCG(o.Seed, 0x6e657572616c6e65+uint64(gates)))
	p := newPass(m)
	p.way.start(random)
	p.learn()
	wanted := make([]float64, o.Horizon)
	err := descend(ctx, batches*min(mostLags, o.Lags)/o.Lags, batchRows, func() {
		for range batchRows {
			i := random.IntN(len(w.lags))
			lags := w.lags[i]
			for h, v := range w.next[i] {
				wanted[h] = m.Scale.to(v - lags[len(lags)-1])
			}
			p.forward(lags)
			p.backward(wanted)
		}
	}, newAdam(m.Weights, p.way.gradient), newAdam(m.Head, p.head))
	if err != nil {
		return nil, err
	}
	return m, nil
}

// descend moves the weights so many times, each time after batch has added up the gradients of count errors.
func descend(ctx context.Context, steps int, count float64, batch func(), layers ...*adam) error {
	for step := 1; step <= steps; step++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch()
		norm := 0.0
		for _, layer := range layers {
			for _, g := range layer.gradient {
				norm += g * g
			}
		}
		factor := 1 / count
		if norm = math.Sqrt(norm) / count; norm > longestWay {
			factor *= longestWay / norm
		}
		size := stepSize * (0.55 + 0.45*math.Cos(math.Pi*float64(step)/float64(steps)))
		for _, layer := range layers {
			layer.move(step, size, factor)
		}
	}
	return nil
}
