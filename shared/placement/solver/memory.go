package solver

// Memory solves one problem after the other and begins each with the results of the last one: the flow of unit-slot
// problems starts from the last basis, the bound of others from the last prices, and their search also from the last
// solution. The zero Memory is ready; it is not safe for concurrent use.
type Memory struct {
	slots  *slotFlow
	prices map[dimAt]float64
	at     map[string]NodeID
}

// dimAt identifies one dim of one node across problems.
type dimAt struct {
	node NodeID
	dim  string
}

// Solve finds a placement for the whole problem.
func (s *Memory) Solve(m *Model) Solution {
	if s.slots == nil {
		s.slots = newSlotFlow()
	}
	m.last = s
	sol := m.solve()
	s.prices = sol.capacity
	s.at = make(map[string]NodeID, len(sol.At))
	for c, n := range sol.At {
		if n >= 0 {
			s.at[m.Names.ComponentID(int32(c))] = m.Names.NodeID(n)
		}
	}
	return sol
}

// recall puts components where the last solution had them, as far as they fit.
func (s *State) recall() {
	for c := range s.m.Components {
		if id, ok := s.m.last.at[s.m.Names.ComponentID(int32(c))]; ok {
			if n := s.m.Names.FindNode(id); n >= 0 && s.Fits(int32(c), n) {
				s.Put(int32(c), n)
			}
		}
	}
}

// recall sets the prices of capacity to those at the end of the last problem.
func (d *dual) recall(y []float64) {
	m := d.m
	if len(m.last.prices) == 0 {
		return
	}
	for l, n := range d.node {
		if n < 0 {
			continue
		}
		for i := range m.Dims {
			y[l*m.Dims+i] = m.last.prices[dimAt{m.Names.NodeID(n), m.Names.DimID(i)}] * d.units[i]
		}
	}
}

// capacity returns the prices of capacity that are not zero, per single unit.
func (d *dual) capacity(y []float64) map[dimAt]float64 {
	m := d.m
	out := make(map[dimAt]float64)
	for l, n := range d.node {
		for i := range m.Dims {
			if v := y[l*m.Dims+i]; n >= 0 && v > 0 {
				out[dimAt{m.Names.NodeID(n), m.Names.DimID(i)}] = v / d.units[i]
			}
		}
	}
	return out
}
