package placement

import "math"

// unknownEnergy is the energy score of a node that does not report its draw: low, as for several times the draw of the
// best node, but not below every node that reports it.
const unknownEnergy = 25.0

// findCandidates filters and scores the nodes for every class. Clusters are the outer loop, so that their nodes stay in
// the processor's cache for all classes.
func (m *model) findCandidates() {
	m.Prepare()
	for i := range m.classes {
		m.classes[i].watts = math.Inf(1)
	}
	for k := range int32(len(m.OrchestratorOf)) {
		for i := range m.classes {
			m.filter(i, k)
		}
	}
	for k := range int32(len(m.OrchestratorOf)) {
		for i := range m.classes {
			m.score(i, k)
		}
	}
	for i := range m.classes {
		m.classes[i].home = m.matching(i)
	}
}

// filter finds the candidates of a class in a cluster.
func (m *model) filter(class int, cluster int32) {
	cl, points := &m.classes[class], m.Classes[class].Points
	met := m.sets[cl.set].met
	cpu, memory := cl.request.CPU, cl.request.Memory
	for n := m.Clusters[cluster]; n < m.Clusters[cluster+1]; n++ {
		node := &m.nodes[n]
		if !met[n] || cpu > node.freeCPU || memory > node.freeMemory {
			points[n] = -1
			continue
		}
		if node.watts >= 0 {
			cl.watts = min(cl.watts, node.watts)
		}
	}
}

// score gives the candidates of a class in a cluster their points.
func (m *model) score(class int, cluster int32) {
	cl, points := &m.classes[class], m.Classes[class].Points
	for n := m.Clusters[cluster]; n < m.Clusters[cluster+1]; n++ {
		if points[n] >= 0 {
			points[n] = max(0, m.scoreAt(cl, n).points()) // a given score may be -0, which would sort differently from 0
		}
	}
	m.Tally(&m.Classes[class], cluster)
}

// scoreAt returns the score of the class's components at a candidate node.
//
//	performance = 100 * ((idleCPU - cpu)/CPU + (idleMemory - memory)/Memory) / 2     an unknown capacity adds 0
//	energy      = 100 * (1 + least) / (1 + w), w = watts * 1000 / freeCPU, least = min w over the candidates;
//	              25 when the draw or the free cpu is unknown or zero
//	security    = SCA score, cut to 0..100; 0 when unknown
//	weighted    = (wp*performance + we*energy + ws*security) / (wp + we + ws), or what Problem.Scores gives
//	preferred   = the points of all preferences, which count beside weighted
//
// The one watt per core in energy keeps a node that reports 0 W from making all others worthless. Scores look at a
// component alone: what else the plan puts on the node limits where it fits, not what it scores.
func (m *model) scoreAt(cl *class, n int32) Score {
	node := &m.nodes[n]
	s := Score{
		Performance: 100 * (share(node.idleCPU, cl.request.CPU, node.cpu) + share(node.idleMemory, cl.request.Memory, node.memory)) / 2,
		Energy:      unknownEnergy,
		Security:    node.security,
	}
	if node.watts >= 0 {
		s.Energy = 100 * (1 + cl.watts) / (1 + node.watts)
	}
	if cl.given != nil {
		s.Weighted = cl.given[node.index]
	} else {
		w := cl.weights
		s.Weighted = w.Performance*s.Performance + w.Energy*s.Energy + w.Security*s.Security
	}
	for _, i := range cl.preferences {
		s.Preferred += m.p.Preferences[i].Points[node.index]
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
