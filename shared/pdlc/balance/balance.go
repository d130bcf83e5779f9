// Package balance learns to spread pods over nodes so that all nodes are loaded alike: the environment of CODECO's deliverable D11
// with its faults corrected, agents that learn in it (DQN, PPO and A3C), and what they have to beat (a greedy rule) and cannot (the
// best there is). All is seeded: the same options give the same agent on one kind of processor.
//
//	W(n)   = 100 * (wc * usedCPU/CPU + wr * usedRAM/RAM), wc + wr = 1      the load of a node, 0 to 100
//	reward = -std(W over all nodes) + 100 * placed / pods
//
// The document prints Max/Used, which falls with the load, and subtracts a count from a percentage.
package balance

import (
	"math"
	"math/rand/v2"
)

// Machine is a node: what it has, and what is in use.
type Machine struct {
	CPU     float64 `json:"cpu"`
	RAM     float64 `json:"ram"`
	UsedCPU float64 `json:"usedCPU"`
	UsedRAM float64 `json:"usedRAM"`
}

// Pod is what is to be placed.
type Pod struct {
	CPU float64 `json:"cpu"`
	RAM float64 `json:"ram"`
}

// World is an instance of the problem.
type World struct {
	Machines []Machine `json:"machines"`
	Pods     []Pod     `json:"pods"`
	// WeightCPU is that of the cpu in a node's load; the memory has the rest.
	WeightCPU float64 `json:"weightCPU"`
}

// Hold leaves a pod without a node: where D11 has its node Fake, which counts in no load.
const Hold = -1

// State is a world of which some pods are decided.
type State struct {
	World  *World
	Next   int       // the pod that is to be decided
	used   []Machine // as Machines, with what was placed
	At     []int     // of each decided pod
	Placed int
}

// Begin is the state before the first pod.
func (w *World) Begin() *State {
	return &State{World: w, used: append([]Machine{}, w.Machines...)}
}

// Done says that every pod is decided.
func (s *State) Done() bool { return s.Next == len(s.World.Pods) }

// Fits reports whether the next pod fits on a node.
func (s *State) Fits(n int) bool {
	m, p := &s.used[n], s.World.Pods[s.Next]
	return m.UsedCPU+p.CPU <= m.CPU && m.UsedRAM+p.RAM <= m.RAM
}

// Step decides the next pod, and returns what the reward grows by. A node that it does not fit on is Hold.
func (s *State) Step(n int) float64 {
	before := s.Reward()
	p := s.World.Pods[s.Next]
	if n != Hold && !s.Fits(n) {
		n = Hold
	}
	if n != Hold {
		s.used[n].UsedCPU += p.CPU
		s.used[n].UsedRAM += p.RAM
		s.Placed++
	}
	s.At = append(s.At, n)
	s.Next++
	return s.Reward() - before
}

// Load of a node, 0 to 100.
func (s *State) Load(n int) float64 { return s.World.load(&s.used[n]) }

func (w *World) load(m *Machine) float64 {
	return 100 * (w.WeightCPU*m.UsedCPU/m.CPU + (1-w.WeightCPU)*m.UsedRAM/m.RAM)
}

// Std is the standard deviation of the loads.
func (s *State) Std() float64 { return s.stdWith(Hold) }

// stdWith is Std once the next pod is on a node.
func (s *State) stdWith(n int) float64 {
	sum, squares := 0.0, 0.0
	for i := range s.used {
		l := s.Load(i)
		if i == n {
			m, p := s.used[i], s.World.Pods[s.Next]
			m.UsedCPU += p.CPU
			m.UsedRAM += p.RAM
			l = s.World.load(&m)
		}
		sum += l
		squares += l * l
	}
	k := float64(len(s.used))
	return math.Sqrt(max(0, squares/k-sum/k*sum/k))
}

// Reward so far.
func (s *State) Reward() float64 {
	return 100*float64(s.Placed)/float64(max(1, len(s.World.Pods))) - s.Std()
}

// Agent values the nodes for the next pod; the best one that fits is taken, and Hold where none does.
type Agent interface {
	// Values are better the higher they are, of whatever scale.
	Values(s *State) []float64
}

// Greedy values a node by how little the loads then differ.
type Greedy struct{}

// Values implements Agent.
func (Greedy) Values(s *State) []float64 {
	out := make([]float64, len(s.used))
	for n := range out {
		out[n] = -s.stdWith(n)
	}
	return out
}

// Best returns the node of the greatest value on which the next pod fits; Hold when it fits on none.
func Best(s *State, values []float64) int {
	best := Hold
	for n, v := range values {
		if s.Fits(n) && (best == Hold || v > values[best]) {
			best = n
		}
	}
	return best
}

// Play lets an agent decide all pods.
func Play(w *World, a Agent) *State {
	s := w.Begin()
	for !s.Done() {
		s.Step(Best(s, a.Values(s)))
	}
	return s
}

// Recommend is Play, with the values of each pod as shares of the best: 1 on the best node, 0 where it does not fit.
func Recommend(w *World, a Agent) [][]float64 {
	s := w.Begin()
	var out [][]float64
	for !s.Done() {
		values := a.Values(s)
		best := Best(s, values)
		shares := make([]float64, len(values))
		low := math.Inf(1)
		for n, v := range values {
			if s.Fits(n) {
				low = min(low, v)
			}
		}
		for n, v := range values {
			switch {
			case !s.Fits(n):
			case values[best] > low:
				shares[n] = (v - low) / (values[best] - low)
			default:
				shares[n] = 1
			}
		}
		out = append(out, shares)
		s.Step(best)
	}
	return out
}

// Optimum is the best reward that there is, by looking at every way: for few pods and nodes alone.
func Optimum(w *World) *State {
	var best *State
	var look func(s *State)
	look = func(s *State) {
		if s.Done() {
			if best == nil || s.Reward() > best.Reward()+1e-12 {
				best = s
			}
			return
		}
		for n := Hold; n < len(s.used); n++ {
			if n != Hold && !s.Fits(n) {
				continue
			}
			next := &State{World: w, Next: s.Next, used: append([]Machine{}, s.used...), At: append([]int{}, s.At...), Placed: s.Placed}
			next.Step(n)
			look(next)
		}
	}
	look(w.Begin())
	return best
}

// Size of random worlds.
type Size struct{ Machines, Pods int }

// Random makes a world: machines of two kinds, loaded somehow, and pods that together need a good part of what is left.
func Random(r *rand.Rand, size Size) *World {
	w := &World{WeightCPU: 0.5}
	for range size.Machines {
		cores := []float64{4, 8}[r.IntN(2)]
		m := Machine{CPU: cores, RAM: cores * []float64{2, 4}[r.IntN(2)]}
		load := 0.6 * r.Float64()
		m.UsedCPU, m.UsedRAM = load*m.CPU*(0.7+0.6*r.Float64()), load*m.RAM*(0.7+0.6*r.Float64())
		w.Machines = append(w.Machines, m)
	}
	for range size.Pods {
		w.Pods = append(w.Pods, Pod{CPU: 0.25 * float64(1+r.IntN(8)), RAM: 0.5 * float64(1+r.IntN(8))})
	}
	return w
}
