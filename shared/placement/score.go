package placement

import (
	"math"
	"slices"
)

// unknownEnergy is the energy score of a node that does not report its draw: low, as if it drew several times what the
// best node does, but not below every node that does report.
const unknownEnergy = 25.0

// score fills the scores of all classes' candidates and sorts these, best first, ties by node.
//
//	performance = 100 * ((freeCPU - cpu)/CPU + (freeMemory - memory)/Memory) / 2     an unknown capacity adds 0
//	energy      = 100 * (1 + least) / (1 + w), w = watts * 1000 / freeCPU, least = min w over the candidates;
//	              25 when the draw or the free cpu is unknown or zero
//	security    = SCA score, cut to 0..100; 0 when unknown
//	weighted    = (wp*performance + we*energy + ws*security) / (wp + we + ws), or what Problem.Scores gives
//
// The one watt per core in energy keeps a node that reports 0 W from making all others worthless. Scores look at a
// component alone: what else the plan puts on the node limits where it fits, not what it scores.
func (m *model) score() {
	rank := make([][]ranked, len(m.classes))
	for i := range m.classes {
		rank[i] = make([]ranked, 0, len(m.classes[i].nodes))
	}
	for n := range int32(len(m.nodes)) {
		for i := range m.classes {
			if cl, k := &m.classes[i], len(rank[i]); k < len(cl.nodes) && cl.nodes[k] == n {
				rank[i] = append(rank[i], ranked{m.scoreAt(cl, n).Weighted, n})
			}
		}
	}
	var spare []ranked
	for i := range m.classes {
		cl := &m.classes[i]
		rank[i], spare = byPoints(rank[i], spare)
		cl.points = make([]float64, len(cl.nodes))
		for k, r := range rank[i] {
			cl.nodes[k], cl.points[k] = r.node, r.points
		}
	}
}

// ranked is a candidate with its points.
type ranked struct {
	points float64
	node   int32
}

// byPoints sorts candidates that come in order of node by falling points, in linear time (radix sort, least digit
// first: the bits of floats that are not negative are in the order of the floats). It returns the sorted list and room
// for the next one.
func byPoints(list, spare []ranked) (sorted, room []ranked) {
	spare = slices.Grow(spare[:0], len(list))[:len(list)]
	for shift := 0; shift < 64; shift += 8 {
		digit := func(r ranked) int { return 255 - int(byte(math.Float64bits(r.points)>>shift)) }
		var next [257]int // where the next candidate with a digit goes
		for _, r := range list {
			next[digit(r)+1]++
		}
		for i := 1; i < len(next); i++ {
			next[i] += next[i-1]
		}
		for _, r := range list {
			d := digit(r)
			spare[next[d]] = r
			next[d]++
		}
		list, spare = spare, list
	}
	return list, spare
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
