package solver

// Candidates returns the candidates of a class with these points by node (negative for no candidate), as returned by
// candidate up to the k-th, and then by ranked.
func Candidates(points []float64, k int) (first, all []int32) {
	m := &Model{Nodes: make([]Node, len(points)), Classes: make([]Class, 1), Orchestrators: 1}
	m.OrchestratorOf, m.Clusters = []int32{0}, []int32{0, int32(len(points))}
	m.Prepare()
	cl := &m.Classes[0]
	copy(cl.Points, points)
	m.Tally(cl, 0)
	for i := range min(k, cl.count) {
		first = append(first, cl.Candidate(i))
	}
	return first, cl.ranked()
}
