package solver

import (
	"cmp"
	"slices"
)

// starts finds a first solution in several orders: components that may stay do, and each other one goes to its best
// node.
func (s *State) starts(sol *Solution) {
	hardest := s.hardest()
	connected, _ := s.connected()
	smallest := slices.Clone(hardest) // this order fits the most if there is not room for all
	slices.Reverse(smallest)
	if len(s.m.last.at) > 0 {
		s.recall()
		s.greedy(hardest)
		sol.improveTo(s)
	}
	for i, order := range [][]int32{hardest, connected, smallest} {
		if i == 2 && sol.Placed == sol.PlacedBound {
			break
		}
		s.clear()
		s.placeAtHome()
		s.greedy(order)
		sol.improveTo(s)
		if s.spent() {
			break
		}
	}
}

// repair makes a placement from the last result of the relaxation: as many components as fit stay, and the others go
// one by one to their best places.
func (s *State) repair(d *dual, order []int32) {
	s.clear()
	for _, c := range order {
		if l := d.at[c]; l >= 0 && d.node[l] >= 0 && s.Fits(c, d.node[l]) {
			s.Put(c, d.node[l])
		}
	}
	s.greedy(order)
}

// buildFromPrices makes a placement from prices: tree after tree goes to its most valuable place after prices, within the
// capacity that earlier trees left. Components that do not fit together then go one by one to their best places.
func (s *State) buildFromPrices(d *dual, y []float64, order []int32) {
	s.clear()
	d.evaluate(y, nil) // determines the orchestrators of groups
	d.given = s
	for i := 0; i < len(d.order); {
		end := i + 1
		for end < len(d.order) && d.parent[d.order[end]] >= 0 {
			end++
		}
		tree := d.order[i:end]
		i = end
		for k := len(tree) - 1; k >= 0; k-- {
			d.solve(&d.shapes[d.shape[tree[k]]], tree[k], y)
		}
		for _, c := range tree {
			d.chooseLabel(c)
		}
		for _, c := range tree {
			if l := d.at[c]; l >= 0 && s.Fits(c, d.node[l]) {
				s.Put(c, d.node[l])
			}
		}
		d.work += int64(len(tree)*len(d.node)) / 2
	}
	d.given = nil
	s.greedy(order)
}

// placeAtHome puts components that may stay in their current places: first those whose channels keep the routes that they take now,
// so that none of these is taken by a channel that has another, then the others.
func (s *State) placeAtHome() {
	for i := range s.last {
		s.last[i] = s.m.Channels[i].Now
	}
	s.putAtHome(s.onNow)
	if len(s.m.Channels) > 0 {
		s.putAtHome(func(int32) bool { return true })
	}
}

// putAtHome puts components that have no place in their current places, as far as they fit and keep says so afterwards.
func (s *State) putAtHome(keep func(c int32) bool) {
	for c := range s.m.Components {
		if s.At[c] >= 0 {
			continue
		}
		node, value := int32(-1), 0.0
		for k, n := range s.m.Components[c].Home {
			if k >= tired && s.spent() {
				break
			}
			if s.Fits(int32(c), n) {
				if v := s.Value(int32(c), n); node < 0 || v > value {
					node, value = n, v
				}
			}
		}
		if node < 0 {
			continue
		}
		if s.Put(int32(c), node); !keep(int32(c)) {
			s.Remove(int32(c))
		}
	}
}

// greedy places the components that have no place yet, each at its best node.
func (s *State) greedy(order []int32) {
	rooms := make([]*free, len(s.m.Classes))
	for _, c := range order {
		if s.At[c] >= 0 {
			continue
		}
		k := s.m.Components[c].Class
		if rooms[k] == nil {
			rooms[k] = &free{}
		}
		if n, _ := s.bestOf(c, rooms[k]); n >= 0 {
			s.Put(c, n)
		}
	}
}

// hardest orders components by how hard they are to place: few candidates first, then the largest demand.
func (s *State) hardest() []int32 {
	m := s.m
	whole := make([]float64, m.Dims) // of each dim over all nodes
	for n := range m.Nodes {
		for d := range m.Dims {
			whole[d] += float64(m.Free[n*m.Dims+d])
		}
	}
	large := make([]float64, len(m.Classes)) // the largest share of a dim that one member takes
	for i := range m.Classes {
		for _, d := range m.Classes[i].Demand {
			large[i] = max(large[i], float64(d.Amount)/max(1, whole[d.Dim]))
		}
	}
	order := make([]int32, len(m.Components))
	for c := range order {
		order[c] = int32(c)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := m.Components[a].Class, m.Components[b].Class
		return cmp.Or(cmp.Compare(m.Classes[x].count, m.Classes[y].count), cmp.Compare(large[y], large[x]))
	})
	return order
}

// connected orders components so that each follows one that it is joined to, the hardest of a set first. starts has the
// beginning of each set of joined components.
func (s *State) connected() (order []int32, starts []int) {
	seen := make([]bool, len(s.m.Components))
	order = make([]int32, 0, len(s.m.Components))
	for _, root := range s.hardest() {
		if seen[root] {
			continue
		}
		seen[root] = true
		starts = append(starts, len(order))
		order = append(order, root)
		for next := len(order) - 1; next < len(order); next++ {
			es := slices.Clone(s.m.Edges[order[next]])
			slices.SortStableFunc(es, func(a, b Edge) int { return cmp.Compare(b.Weight, a.Weight) })
			for _, e := range es {
				if !seen[e.To] {
					seen[e.To] = true
					order = append(order, e.To)
				}
			}
		}
	}
	return order, starts
}
