package placement

import "math"

// unknownEnergy is the energy score of a node that does not report its draw: low, as for several times the draw of the
// best node, but not below every node that reports it.
const unknownEnergy = 25.0

// candidates filters and scores the nodes for every class. Clusters are the outer loop, so that their nodes stay in the
// processor's cache for all classes.
func (m *model) candidates() {
	for i := range m.classes {
		cl := &m.classes[i]
		cl.least, cl.few = math.Inf(1), math.Inf(1)
		cl.points = make([]float64, len(m.nodes))
		cl.inCluster, cl.inOrch = make([]int32, len(m.orchOf)), make([]int32, len(m.orchs))
	}
	for k := range m.orchOf {
		for i := range m.classes {
			m.filter(&m.classes[i], int32(k))
		}
	}
	for k := range m.orchOf {
		for i := range m.classes {
			m.score(&m.classes[i], int32(k))
		}
	}
	for i := range m.classes {
		m.classes[i].home = m.matching(&m.classes[i])
	}
	m.work = int64(len(m.classes)) * int64(len(m.nodes))
}

// filter finds the candidates of a class in a cluster.
func (m *model) filter(cl *class, k int32) {
	suits := m.tastes[cl.taste].suits
	cpu, memory := cl.want.CPU, cl.want.Memory
	found := int32(0)
	for n := m.clusters[k]; n < m.clusters[k+1]; n++ {
		h := &m.nodes[n]
		if !suits[n] || cpu > h.freeCPU || memory > h.freeMemory {
			cl.points[n] = -1
			continue
		}
		found++
		if h.watts >= 0 {
			cl.least = min(cl.least, h.watts)
		}
	}
	cl.count += int(found)
	cl.inCluster[k] = found
	cl.inOrch[m.orchOf[k]] += found
}

// score gives the candidates of a class in a cluster their points.
func (m *model) score(cl *class, k int32) {
	for n := m.clusters[k]; n < m.clusters[k+1]; n++ {
		if cl.points[n] >= 0 {
			v := max(0, m.scoreAt(cl, n).Weighted) // a given score may be -0, which would sort differently from 0
			cl.points[n] = v
			cl.most, cl.few = max(cl.most, v), min(cl.few, v)
		}
	}
}

// scoreAt returns the score of the class's components at a candidate node.
//
//	performance = 100 * ((idleCPU - cpu)/CPU + (idleMemory - memory)/Memory) / 2     an unknown capacity adds 0
//	energy      = 100 * (1 + least) / (1 + w), w = watts * 1000 / freeCPU, least = min w over the candidates;
//	              25 when the draw or the free cpu is unknown or zero
//	security    = SCA score, cut to 0..100; 0 when unknown
//	weighted    = (wp*performance + we*energy + ws*security) / (wp + we + ws), or what Problem.Scores gives
//
// The one watt per core in energy keeps a node that reports 0 W from making all others worthless. Scores look at a
// component alone: what else the plan puts on the node limits where it fits, not what it scores.
func (m *model) scoreAt(cl *class, n int32) Score {
	h := &m.nodes[n]
	s := Score{
		Performance: 100 * (share(h.idleCPU, cl.want.CPU, h.cpu) + share(h.idleMemory, cl.want.Memory, h.memory)) / 2,
		Energy:      unknownEnergy,
		Security:    h.security,
	}
	if h.watts >= 0 {
		s.Energy = 100 * (1 + cl.least) / (1 + h.watts)
	}
	if cl.given != nil {
		s.Weighted = cl.given[h.index]
	} else {
		w := cl.weights
		s.Weighted = w.Performance*s.Performance + w.Energy*s.Energy + w.Security*s.Security
	}
	return s
}

// share returns the free part of the capacity after the amount is taken, 0..1.
func share(free, take, capacity int64) float64 {
	if capacity <= 0 || take >= free {
		return 0
	}
	return float64(free-take) / float64(capacity)
}

// normalised scales the weights to a sum of 1.
func (w Weights) normalised() Weights {
	sum := w.Performance + w.Energy + w.Security
	if sum == 0 {
		return Weights{1.0 / 3, 1.0 / 3, 1.0 / 3}
	}
	return Weights{w.Performance / sum, w.Energy / sum, w.Security / sum}
}
