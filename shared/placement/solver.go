package placement

// Solver places one problem after the other and begins each with the results of the last one: the flow of unit-slot
// problems starts from the last basis, the bound of others from the last prices, and their search also from the last
// plan. Its results are as valid as those of Place, but it may choose another one among equals, or find more or less
// within the budget. The zero Solver is ready; it is not safe for concurrent use.
type Solver struct {
	unit   *unit
	prices map[scarce]float64
	at     map[string]Target
}

// scarce identifies one dim of one node across problems.
type scarce struct {
	node Target
	dim  dim
}

// Place is the function Place with the memory of earlier calls.
func (s *Solver) Place(p Problem) (Plan, error) {
	nodes, err := validate(&p)
	if err != nil {
		return Plan{}, err
	}
	m, err := newModel(&p, nodes)
	if err != nil {
		return Plan{}, err
	}
	if s.unit == nil {
		s.unit = newUnit()
	}
	m.last = s
	sol := m.solve()
	s.prices = sol.capacity
	s.at = make(map[string]Target, len(sol.at))
	for c, n := range sol.at {
		if n >= 0 {
			s.at[m.comps[c].ID] = m.nodes[n].key()
		}
	}
	return m.plan(sol), nil
}

// recall puts components where the last plan had them, as far as they fit.
func (s *state) recall() {
	for c := range s.m.comps {
		if t, ok := s.m.last.at[s.m.comps[c].ID]; ok {
			if n := s.m.find(t); n >= 0 && s.fits(int32(c), n) {
				s.put(int32(c), n)
			}
		}
	}
}

// recall sets the prices of capacity to those at the end of the last problem.
func (d *dual) recall(y []float64) {
	m := d.m
	for l, n := range d.node {
		for i := range m.dims {
			if n >= 0 {
				y[l*len(m.dims)+i] = m.last.prices[scarce{m.nodes[n].key(), m.dims[i]}] * d.units[i]
			}
		}
	}
}

// capacity returns the prices of capacity that are not zero, per single unit.
func (d *dual) capacity(y []float64) map[scarce]float64 {
	m := d.m
	out := make(map[scarce]float64)
	for l, n := range d.node {
		for i := range m.dims {
			if v := y[l*len(m.dims)+i]; n >= 0 && v > 0 {
				out[scarce{m.nodes[n].key(), m.dims[i]}] = v / d.units[i]
			}
		}
	}
	return out
}
