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

const rowSize = 1 + stateSize + 1

func decodedNetwork(data []byte, gates int) (Model, error) {
	m, err := decoded[*network](data)
	if err != nil {
		return nil, err
	}
	n, ok := m.(*network)
	if !ok || n == nil || n.Gates != gates || n.Lags < 1 || n.Ahead < 1 || len(n.Weights) != gates*stateSize*rowSize ||
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

// moment is what the way back needs of one step through the lags.
type moment struct {
	x      float64
	gates  []float64 // after their functions, by gate and cell
	state  []float64
	memory []float64 // of an LSTM
	damped []float64 // of a GRU: the state before, as far as the reset gate lets it through
}

// pass is one way through the network, with room for its intermediate values.
type pass struct {
	m     *network
	steps []moment // the first is before any lag
	out   []float64

	weights, head         []float64 // gradients
	dState, dMemory, dSum []float64
	before, dDamped       []float64
}

func newPass(m *network) *pass {
	p := &pass{m: m, out: make([]float64, m.Ahead), steps: make([]moment, m.Lags+1)}
	for i := range p.steps {
		room := make([]float64, (m.Gates+3)*stateSize)
		cut := func(n int) []float64 {
			part := room[:n*stateSize]
			room = room[n*stateSize:]
			return part
		}
		p.steps[i] = moment{gates: cut(m.Gates), state: cut(1), memory: cut(1), damped: cut(1)}
	}
	return p
}

func sigmoid(v float64) float64 { return 1 / (1 + math.Exp(-v)) }

// sum is what reaches a cell's gate.
func (p *pass) sum(gate, cell int, x float64, state []float64) float64 {
	row := p.m.Weights[(gate*stateSize+cell)*rowSize:][:rowSize]
	total := row[0]*x + row[rowSize-1]
	for k, v := range state {
		total += row[1+k] * v
	}
	return total
}

// forward returns the changes ahead, scaled, in a slice that the next call overwrites.
func (p *pass) forward(lags []float64) []float64 {
	last := lags[len(lags)-1]
	for t, lag := range lags {
		was, now := &p.steps[t], &p.steps[t+1]
		now.x = p.m.Scale.to(lag - last)
		if p.m.Gates == lstmGates {
			p.remember(was, now)
		} else {
			p.update(was, now)
		}
	}
	state := p.steps[len(lags)].state
	for h := range p.out {
		row := p.m.Head[h*(stateSize+1):][:stateSize+1]
		total := row[stateSize]
		for k, v := range state {
			total += row[k] * v
		}
		p.out[h] = total
	}
	return p.out
}

func (p *pass) remember(was, now *moment) {
	for c := range stateSize {
		in, forget := sigmoid(p.sum(0, c, now.x, was.state)), sigmoid(p.sum(1, c, now.x, was.state))
		candidate, out := math.Tanh(p.sum(2, c, now.x, was.state)), sigmoid(p.sum(3, c, now.x, was.state))
		now.gates[c], now.gates[stateSize+c], now.gates[2*stateSize+c], now.gates[3*stateSize+c] = in, forget, candidate, out
		now.memory[c] = forget*was.memory[c] + in*candidate
		now.state[c] = out * math.Tanh(now.memory[c])
	}
}

func (p *pass) update(was, now *moment) {
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

// learn makes room for gradients.
func (p *pass) learn() {
	p.weights, p.head = make([]float64, len(p.m.Weights)), make([]float64, len(p.m.Head))
	p.dState, p.dMemory, p.dDamped = make([]float64, stateSize), make([]float64, stateSize), make([]float64, stateSize)
	p.dSum, p.before = make([]float64, p.m.Gates*stateSize), make([]float64, stateSize)
}

// backward adds the gradients of half the squared error of what forward returned last.
func (p *pass) backward(wanted []float64) {
	end := &p.steps[p.m.Lags]
	clear(p.dState)
	clear(p.dMemory)
	for h, want := range wanted {
		miss := p.out[h] - want
		row, grow := p.m.Head[h*(stateSize+1):][:stateSize+1], p.head[h*(stateSize+1):][:stateSize+1]
		for k, v := range end.state {
			grow[k] += miss * v
			p.dState[k] += miss * row[k]
		}
		grow[stateSize] += miss
	}
	for t := p.m.Lags; t > 0; t-- {
		was, now := &p.steps[t-1], &p.steps[t]
		clear(p.before)
		if p.m.Gates == lstmGates {
			p.recall(was, now)
			p.spread(0, lstmGates, now.x, was.state, p.before)
		} else {
			p.revert(was, now)
		}
		p.dState, p.before = p.before, p.dState
	}
}

// recall finds what each sum of an LSTM's step contributed.
func (p *pass) recall(was, now *moment) {
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
func (p *pass) revert(was, now *moment) {
	for c := range stateSize {
		keep, candidate := now.gates[c], now.gates[2*stateSize+c]
		p.dSum[c] = p.dState[c] * (was.state[c] - candidate) * keep * (1 - keep)
		p.dSum[2*stateSize+c] = p.dState[c] * (1 - keep) * (1 - candidate*candidate)
		p.before[c] = p.dState[c] * keep
	}
	clear(p.dDamped)
	p.spread(2, 3, now.x, now.damped, p.dDamped)
	for c, d := range p.dDamped {
		reset := now.gates[stateSize+c]
		p.before[c] += d * reset
		p.dSum[stateSize+c] = d * was.state[c] * reset * (1 - reset)
	}
	p.spread(0, 2, now.x, was.state, p.before)
}

// spread adds the gradients of the weights of some gates, and to the state that they read.
func (p *pass) spread(from, to int, x float64, state, into []float64) {
	for at := from * stateSize; at < to*stateSize; at++ {
		d := p.dSum[at]
		row, grow := p.m.Weights[at*rowSize:][:rowSize], p.weights[at*rowSize:][:rowSize]
		grow[0] += d * x
		grow[rowSize-1] += d
		for k, v := range state {
			grow[1+k] += d * v
			into[k] += d * row[1+k]
		}
	}
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
	m.Scale.Mean = 0 // differences have none
	random := rand.New(rand.NewPCG(o.Seed, 0x6e657572616c6e65+uint64(gates)))
	m.Weights, m.Head = make([]float64, gates*stateSize*rowSize), make([]float64, o.Horizon*(stateSize+1)) // nothing changes, at first
	for i := range m.Weights {
		if i%rowSize < rowSize-1 {
			m.Weights[i] = (2*random.Float64() - 1) / math.Sqrt(stateSize)
		} else if gates == lstmGates && i/rowSize/stateSize == 1 {
			m.Weights[i] = 1 // a cell remembers until it has learnt to forget
		}
	}
	p := newPass(m)
	p.learn()
	layer, head := newAdam(m.Weights, p.weights), newAdam(m.Head, p.head)
	wanted := make([]float64, o.Horizon)
	steps := batches * min(mostLags, o.Lags) / o.Lags
	for step := 1; step <= steps; step++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for range batchRows {
			i := random.IntN(len(w.lags))
			lags := w.lags[i]
			for h, v := range w.next[i] {
				wanted[h] = m.Scale.to(v - lags[len(lags)-1])
			}
			p.forward(lags)
			p.backward(wanted)
		}
		norm := 0.0
		for _, list := range [][]float64{p.weights, p.head} {
			for _, g := range list {
				norm += g * g
			}
		}
		factor := 1.0 / batchRows
		if norm = math.Sqrt(norm) / batchRows; norm > longestWay {
			factor *= longestWay / norm
		}
		size := stepSize * (0.55 + 0.45*math.Cos(math.Pi*float64(step)/float64(steps)))
		layer.move(step, size, factor)
		head.move(step, size, factor)
	}
	return m, nil
}
