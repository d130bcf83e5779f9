package placement

import (
	"cmp"
	"slices"
)

// search makes a placement from the last result of the relaxation, and sometimes from its prices, and improves it.
func (b *branch) search(y []float64) {
	s := b.s
	whole := s.budget
	s.budget = min(whole-b.d.work, s.work+whole/branchSearch)
	if b.count%4 == 0 {
		s.plant(b.d, y, b.order)
	} else {
		s.repair(b.d, b.order)
	}
	s.improve()
	s.budget = whole
	if b.sol.take(s) {
		b.replant()
	}
}

// replant places every component again together with its neighbours in the tree: with all others fixed, dynamic
// programming finds the best places for the group, ignoring the resources that its members take from each other.
func (b *branch) replant() {
	s, d := b.s, b.d
	s.reset(b.sol.at)
	d.inside = make([]bool, len(s.at))
	mask := d.mask
	d.mask = nil
	d.charge(make([]float64, d.y.end))
	for again := true; again && !b.tired(); {
		again = false
		for c := range s.at {
			ball := b.ball(int32(c))
			ready := false
			again = s.replace(ball, func(c int32) (int32, float64) {
				if !ready {
					ready = true
					b.regrow(ball)
				}
				if l := d.at[c]; l >= 0 && s.fits(c, d.node[l]) {
					return d.node[l], s.value(c, d.node[l])
				}
				return s.best(c)
			}) || again
		}
	}
	d.inside, d.mask = nil, mask
	b.sol.take(s)
}

// regrow finds labels for the components of a ball, parents first, given the placed components.
func (b *branch) regrow(ball []int32) {
	d := b.d
	d.beside = b.s
	for _, c := range ball {
		d.inside[c] = true
	}
	y := make([]float64, d.y.end)
	for i := len(ball) - 1; i >= 0; i-- {
		d.solve(&d.shapes[d.shape[ball[i]]], ball[i], y)
	}
	for _, c := range ball {
		d.settle(c)
	}
	for _, c := range ball {
		d.inside[c] = false
	}
	d.beside = nil
	d.work += int64(len(ball)*len(d.node)) / 3
}

// ball returns the components within a few steps of one in its tree, parents first.
func (b *branch) ball(c int32) []int32 {
	out := []int32{c}
	for next := 0; next < len(out) && len(out) < maxBall; next++ {
		for i := range b.s.m.edges[out[next]] {
			e := b.s.m.edges[out[next]][i].to
			if (b.d.parent[e] == out[next] || b.d.parent[out[next]] == e) && !slices.Contains(out, e) && len(out) < maxBall {
				out = append(out, e)
			}
		}
	}
	slices.SortFunc(out, func(x, y int32) int { return cmp.Compare(b.rank[x], b.rank[y]) })
	return out
}
