package solver

import (
	"cmp"
	"slices"
)

// roundRelaxation makes a placement from the last result of the relaxation, and sometimes from its prices, and improves it.
func (b *branch) roundRelaxation(y []float64) {
	s := b.s
	whole := s.budget
	s.budget = min(whole-b.d.work, s.work+whole/branchSearch)
	if b.count%4 == 0 {
		s.buildFromPrices(b.d, y, b.order)
	} else {
		s.repair(b.d, b.order)
	}
	s.improve()
	s.budget = whole
	if b.sol.improveTo(s) {
		b.reoptimize()
	}
}

// reoptimize places every component again together with its neighbours in the tree: with all others fixed, dynamic
// programming finds the best places for the group, ignoring the resources that its members take from each other.
func (b *branch) reoptimize() {
	s, d := b.s, b.d
	s.resetTo(b.sol)
	d.inside = make([]bool, len(s.At))
	mask := d.mask
	d.mask = nil
	d.subtractPrices(make([]float64, d.y.end))
	for again := true; again && !b.tired(); {
		again = false
		for c := range s.At {
			near := b.neighbourhood(int32(c))
			ready := false
			again = s.replace(near, func(c int32) (int32, float64) {
				if !ready {
					ready = true
					b.reoptimizeSubtree(near)
				}
				if l := d.at[c]; l >= 0 && s.Fits(c, d.node[l]) {
					return d.node[l], s.Value(c, d.node[l])
				}
				return s.best(c)
			}) || again
		}
	}
	d.inside, d.mask = nil, mask
	b.sol.improveTo(s)
}

// reoptimizeSubtree finds labels for the components of a neighbourhood, parents first, given the placed components.
func (b *branch) reoptimizeSubtree(near []int32) {
	d := b.d
	d.given = b.s
	for _, c := range near {
		d.inside[c] = true
	}
	y := make([]float64, d.y.end)
	for i := len(near) - 1; i >= 0; i-- {
		d.solve(&d.shapes[d.shape[near[i]]], near[i], y)
	}
	for _, c := range near {
		d.chooseLabel(c)
	}
	for _, c := range near {
		d.inside[c] = false
	}
	d.given = nil
	d.work += int64(len(near)*len(d.node)) / 3
}

// neighbourhood returns the components within a few steps of one in its tree, parents first.
func (b *branch) neighbourhood(c int32) []int32 {
	out := []int32{c}
	for next := 0; next < len(out) && len(out) < maxNeighbourhood; next++ {
		for i := range b.s.m.Edges[out[next]] {
			e := b.s.m.Edges[out[next]][i].To
			if (b.d.parent[e] == out[next] || b.d.parent[out[next]] == e) && !slices.Contains(out, e) && len(out) < maxNeighbourhood {
				out = append(out, e)
			}
		}
	}
	slices.SortFunc(out, func(x, y int32) int { return cmp.Compare(b.rank[x], b.rank[y]) })
	return out
}
