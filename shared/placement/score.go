package placement

import (
	"math"
	"slices"
)

// unknownEnergy is the energy score of a node that does not report its draw: low, as if it drew several times what the
// best node does, but not below every node that does report.
const unknownEnergy = 25.0

// score fills the scores of the class's candidates and sorts them, best first, ties by node.
//
//	performance = 100 * ((freeCPU - cpu)/CPU + (freeMemory - memory)/Memory) / 2     an unknown capacity adds 0
//	energy      = 100 * (1 + least) / (1 + w), w = watts * 1000 / freeCPU, least = min w over the candidates;
//	              25 when the draw or the free cpu is unknown or zero
//	security    = SCA score, cut to 0..100; 0 when unknown
//	weighted    = (wp*performance + we*energy + ws*security) / (wp + we + ws), or what Problem.Scores gives
//
// The one watt per core in energy keeps a node that reports 0 W from making all others worthless. Scores look at a
// component alone: what else the plan puts on the node limits where it fits, not what it scores.
func (m *model) score(cl *class) {
	least := math.Inf(1)
	for _, n := range cl.nodes {
		if w, ok := m.nodes[n].wattsPerCore(); ok {
			least = min(least, w)
		}
	}
	cl.least = least
	points := make([]float64, len(m.nodes))
	for _, n := range cl.nodes {
		points[n] = m.scoreAt(cl, n).Weighted
	}
	slices.SortFunc(cl.nodes, func(a, b int32) int {
		switch {
		case points[a] > points[b]:
			return -1
		case points[a] < points[b]:
			return 1
		default:
			return int(a - b)
		}
	})
	cl.points = make([]float64, len(cl.nodes))
	for k, n := range cl.nodes {
		cl.points[k] = points[n]
	}
}

// scoreAt returns the score of the class's components at a candidate node.
func (m *model) scoreAt(cl *class, n int32) Score {
	h := &m.nodes[n]
	s := Score{
		Performance: 100 * (share(h.freeCPU, cl.want.CPU, h.CPU) + share(h.freeMemory, cl.want.Memory, h.Memory)) / 2,
		Energy:      unknownEnergy,
	}
	if w, ok := h.wattsPerCore(); ok {
		s.Energy = 100 * (1 + cl.least) / (1 + w)
	}
	if h.SCA != nil {
		s.Security = min(*h.SCA, 100)
	}
	if cl.given != nil {
		s.Weighted = cl.given[h.index]
	} else {
		w := cl.weights
		s.Weighted = w.Performance*s.Performance + w.Energy*s.Energy + w.Security*s.Security
	}
	return s
}

// share returns the part of the capacity that is free once the amount is taken, 0..1.
func share(free, take, capacity int64) float64 {
	if capacity <= 0 || take >= free {
		return 0
	}
	return float64(free-take) / float64(capacity)
}

// wattsPerCore returns the present draw per free core. Draws beyond any machine's are cut to keep the sums finite.
func (h *have) wattsPerCore() (float64, bool) {
	if h.EnergyWatts == nil || h.freeCPU == 0 {
		return 0, false
	}
	return min(*h.EnergyWatts, 1e12) * 1000 / float64(h.freeCPU), true
}

// normalised scales the weights to a sum of 1.
func (w Weights) normalised() Weights {
	sum := w.Performance + w.Energy + w.Security
	if sum == 0 {
		return Weights{1.0 / 3, 1.0 / 3, 1.0 / 3}
	}
	return Weights{w.Performance / sum, w.Energy / sum, w.Security / sum}
}
