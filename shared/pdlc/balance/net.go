package balance

import (
	"math"
	"math/rand/v2"
)

// What a network sees of a node and the next pod.
const (
	features = 8
	hidden   = 16
	weights  = hidden*(features+2) + 1
)

// net is a network with one hidden layer that values one node at a time, so that it serves any number of nodes.
type net struct {
	W []float64 `json:"w"` // for each hidden unit its weights, its bias and what it counts; then the bias of the answer
}

func newNet(r *rand.Rand) *net {
	n := &net{make([]float64, weights)}
	for i := range n.W {
		n.W[i] = r.NormFloat64() * 0.3
	}
	return n
}

func (n *net) clone() *net { return &net{append([]float64{}, n.W...)} }

// see describes putting the next pod on a node; Hold is the description of none.
func see(s *State, node int) (x [features]float64) {
	left := float64(len(s.World.Pods)-s.Next) / float64(len(s.World.Pods))
	x[0] = 1
	x[1] = left
	if node == Hold {
		x[2] = s.Std() / 20
		return x
	}
	m, p := &s.used[node], s.World.Pods[s.Next]
	x[2] = s.stdWith(node) / 20
	x[3] = (m.UsedCPU + p.CPU) / m.CPU
	x[4] = (m.UsedRAM + p.RAM) / m.RAM
	x[5] = p.CPU / m.CPU
	x[6] = p.RAM / m.RAM
	mean := 0.0
	for i := range s.used {
		mean += s.Load(i) / 100 / float64(len(s.used))
	}
	x[7] = s.Load(node)/100 - mean
	return x
}

// value is the answer, and the state of the hidden layer.
func (n *net) value(x [features]float64) (v float64, h [hidden]float64) {
	v = n.W[weights-1]
	for k := range hidden {
		at := k * (features + 2)
		sum := n.W[at+features]
		for i := range features {
			sum += n.W[at+i] * x[i]
		}
		h[k] = math.Tanh(sum)
		v += n.W[at+features+1] * h[k]
	}
	return v, h
}

// learn adds to grad what the answer's error means for each weight.
func (n *net) learn(x [features]float64, h [hidden]float64, err float64, grad []float64) {
	grad[weights-1] += err
	for k := range hidden {
		at := k * (features + 2)
		grad[at+features+1] += err * h[k]
		inner := err * n.W[at+features+1] * (1 - h[k]*h[k])
		grad[at+features] += inner
		for i := range features {
			grad[at+i] += inner * x[i]
		}
	}
}

// Values implements Agent.
func (n *net) Values(s *State) []float64 {
	out := make([]float64, len(s.used))
	for i := range out {
		out[i], _ = n.value(see(s, i))
	}
	return out
}

// adam makes steps along gradients (Kingma and Ba 2015).
type adam struct {
	rate   float64
	m, v   []float64
	b1, b2 float64 // powers
}

func newAdam(rate float64) *adam {
	return &adam{rate: rate, m: make([]float64, weights), v: make([]float64, weights), b1: 1, b2: 1}
}

// step goes against the gradient, whose length is cut to 1, and clears it.
func (a *adam) step(n *net, grad []float64) {
	length := 0.0
	for _, g := range grad {
		length += g * g
	}
	scale := 1 / max(1, math.Sqrt(length))
	a.b1 *= 0.9
	a.b2 *= 0.999
	for i, g := range grad {
		g *= scale
		a.m[i] = 0.9*a.m[i] + 0.1*g
		a.v[i] = 0.999*a.v[i] + 0.001*g*g
		n.W[i] -= a.rate * a.m[i] / (1 - a.b1) / (math.Sqrt(a.v[i]/(1-a.b2)) + 1e-8)
		grad[i] = 0
	}
}
