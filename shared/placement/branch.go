package placement

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// maxBranched is the number of components times nodes up to which branch takes over from one bound for all.
const maxBranched = 40_000

// Effort at one node of the tree: rounds of the descent, and the share of the budget that search may spend on the
// placement that it suggests.
const (
	branchRounds = 25
	branchSearch = 32
	maxBall      = 10 // components placed anew together
)

// branch splits the problem in two over and over, on a component and a place: it is there, or it is not. Each part has
// its own Lagrangian bound, begun from the prices of the whole; parts whose bound is no better than the best plan are
// done. The part with the highest bound is next, so that bound holds for all that is left (Land and Doig, An automatic
// method of solving discrete programming problems, 1960; Fisher, The Lagrangian relaxation method for solving integer
// programming problems, 1981). It says whether nothing is left.
type branch struct {
	s     *state
	d     *dual
	sol   *solution
	open  parts
	order []int32
	rank  []int32 // of each component in d.order
	count int
	seen  [][]int32 // of each component and label: rounds that had it there
	total int32
}

// part is a part of the problem, which keeps to a chain of decisions.
type part struct {
	*decision
	bound  float64
	number int
	y      []float64
}

// decision keeps one component in a range of labels, or out of it.
type decision struct {
	before   *decision
	c        int32
	from, to int32
	in       bool
}

type parts []part

func (p parts) Len() int      { return len(p) }
func (p parts) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p parts) Less(i, j int) bool {
	return p[i].bound > p[j].bound || (p[i].bound == p[j].bound && p[i].number > p[j].number)
}
func (p *parts) Push(x any) { *p = append(*p, x.(part)) }
func (p *parts) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// branch runs within the budget of the state and lowers the bound of the solution; it says whether the solution is
// proven best. Every component with a candidate must be placed by it already.
func (s *state) branch(sol *solution) bool {
	d := s.m.newDual(s.orch, nil, math.MaxInt, true)
	if d == nil {
		return false
	}
	d.must = true
	b := &branch{s: s, d: d, sol: sol, order: s.hardest(), seen: make([][]int32, len(s.m.comps))}
	b.rank = make([]int32, len(b.seen))
	for i, c := range d.order {
		b.rank[c] = int32(i)
	}
	for c := range b.seen {
		b.seen[c] = make([]int32, len(d.node))
	}
	b.visit(part{bound: sol.bound, y: d.start()}, maxRounds)
	for len(b.open) > 0 && !b.closed(b.open[0].bound) && !b.tired() {
		b.visit(heap.Pop(&b.open).(part), branchRounds)
	}
	s.work += d.work
	if len(b.open) == 0 || b.closed(b.open[0].bound) {
		return true
	}
	sol.bound = min(sol.bound, s.m.rounded(b.open[0].bound))
	return false
}

func (b *branch) tired() bool { return b.s.work+b.d.work > b.s.budget }

// closed says that nothing with this bound is better than the best known.
func (b *branch) closed(bound float64) bool {
	return b.s.m.rounded(bound) <= b.sol.value+slack(b.sol.value)
}

// visit bounds a part and splits it unless that closes it.
func (b *branch) visit(p part, rounds int) {
	if !b.d.restrict(p.decision) {
		return // some component has no place left
	}
	if b.leaf() {
		return
	}
	x := b.d.newDescent(p.y)
	b.forget()
	x.run(b.sol.value, rounds, b.tired, func() float64 {
		b.remember()
		return b.sol.value
	})
	p.bound = min(p.bound, x.bound+slack(x.bound))
	if b.closed(p.bound) {
		return
	}
	b.search(x.best)
	if b.closed(p.bound) {
		return
	}
	c, from, to := b.pick()
	for _, in := range []bool{false, true} {
		b.count++
		heap.Push(&b.open, part{
			decision: &decision{before: p.decision, c: c, from: from, to: to, in: in},
			bound:    p.bound, number: b.count, y: x.best,
		})
	}
}

// leaf takes a part in which every component has one label left: it is a plan, or breaks a rule that has no price.
func (b *branch) leaf() bool {
	for c := range b.s.at {
		if b.d.left[c] > 1 {
			return false
		}
	}
	b.s.clear()
	for c := range b.s.at {
		for l, ok := range b.d.mask[c] {
			if ok && b.s.fits(int32(c), b.d.node[l]) {
				b.s.put(int32(c), b.d.node[l])
			}
		}
	}
	b.sol.take(b.s)
	return true
}

// search makes a placement of what the relaxation found last, now and then of its prices, and improves it.
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

// replant places anew every component with those around it in its tree, as one: with the rest where it is, dynamic
// programming finds their best places but for what they take from each other.
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

// regrow finds labels for the components of a ball, parents first, beside what is placed.
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

func (b *branch) forget() {
	for _, row := range b.seen {
		clear(row)
	}
	b.total = 0
}

func (b *branch) remember() {
	for c, l := range b.d.at {
		if l >= 0 {
			b.seen[c][l]++
		}
	}
	b.total++
}

// pick chooses what to split on: the component that the relaxation was least sure about, first about its cluster, then
// about its node.
func (b *branch) pick() (c, from, to int32) {
	d := b.d
	c, least := int32(-1), int32(math.MaxInt32)
	for i, row := range b.seen {
		if d.left[i] < 2 {
			continue
		}
		for k := range len(d.first) - 1 {
			lo, hi := d.first[k], d.first[k+1]
			var sum, able int32
			for l := lo; l < hi; l++ {
				sum += row[l]
				if d.mask[i][l] {
					able++
				}
			}
			if 2*sum >= b.total && able < d.left[i] && sum < least {
				c, from, to, least = int32(i), lo, hi, sum
			}
		}
	}
	if c >= 0 && least < b.total {
		return c, from, to
	}
	c, least = -1, math.MaxInt32
	for i, row := range b.seen {
		if d.left[i] < 2 {
			continue
		}
		top := int32(-1)
		for l, ok := range d.mask[i] {
			if ok && (top < 0 || row[l] > row[top]) {
				top = int32(l)
			}
		}
		if row[top] < least {
			c, from, to, least = int32(i), top, top+1, row[top]
		}
	}
	return c, from, to
}

// restrict sets the masks of the dual as the decisions say, and bars what does not fit beside components that have one
// node left. It says whether every component has a label left.
func (d *dual) restrict(last *decision) bool {
	m := d.m
	if d.mask == nil {
		d.mask, d.left = make([][]bool, len(m.comps)), make([]int32, len(m.comps))
		for c := range d.mask {
			d.mask[c] = make([]bool, len(d.node))
		}
	}
	for c := range d.mask {
		d.left[c] = 0
		for l, v := range d.base[m.comps[c].class] {
			if d.mask[c][l] = v > none; v > none {
				d.left[c]++
			}
		}
	}
	for x := last; x != nil; x = x.before {
		for l, ok := range d.mask[x.c] {
			if ok && (int32(l) >= x.from && int32(l) < x.to) != x.in {
				d.bar(x.c, int32(l))
			}
		}
	}
	s := m.newState(d.orch, 0)
	var queue []int32
	done := make([]bool, len(m.comps))
	for again := true; again; {
		again = false
		queue = queue[:0]
		for c := range d.mask {
			if d.left[c] == 0 && len(m.classes[m.comps[c].class].nodes) > 0 && d.able(int32(c)) {
				return false
			}
			if d.left[c] == 1 && !done[c] {
				n := d.node[slices.Index(d.mask[c], true)]
				if !s.fits(int32(c), n) {
					return false
				}
				done[c] = true
				s.put(int32(c), n)
				queue = append(queue, int32(c))
			}
		}
		for _, c := range queue {
			l := d.label[s.at[c]]
			for e := range d.mask {
				if d.left[e] > 1 && d.mask[e][l] && !s.fits(int32(e), s.at[c]) {
					d.bar(int32(e), l)
					again = true
				}
			}
		}
	}
	d.work += s.work + int64(len(d.mask)*len(d.node))/8
	return true
}

// able says whether the component has a candidate among the labels.
func (d *dual) able(c int32) bool {
	return slices.ContainsFunc(d.base[d.m.comps[c].class], func(v float64) bool { return v > none })
}

func (d *dual) bar(c, l int32) {
	d.mask[c][l] = false
	d.left[c]--
}

// rounded lowers a bound to what a sum of this problem's points can be at most, where all of them are whole numbers.
func (m *model) rounded(bound float64) float64 {
	if !m.whole() {
		return bound
	}
	return math.Floor(bound + 1e-6)
}

// whole says whether all that counts is in whole points.
func (m *model) whole() bool {
	if m.isWhole == 0 {
		m.isWhole = -1
		if m.allWhole() {
			m.isWhole = 1
		}
	}
	return m.isWhole > 0
}

func (m *model) allWhole() bool {
	whole := func(v float64) bool { return v == math.Floor(v) && v < 1e9 }
	if !whole(m.move) {
		return false
	}
	for i := range m.classes {
		if !slices.ContainsFunc(m.classes[i].points, func(v float64) bool { return !whole(v) }) {
			continue
		}
		return false
	}
	for _, es := range m.edges {
		for i := range es {
			w, sc := es[i].weight, es[i].scope
			if !whole(w*sc.node) || !whole(w*sc.cluster) || !whole(w*sc.orch) || (m.wires != nil && sc == graded) {
				return false
			}
		}
	}
	return true
}
