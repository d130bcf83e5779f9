package solver

import (
	"container/heap"
	"math"
)

// maxBranched is the number of components times nodes up to which branch replaces a single bound.
const maxBranched = 40_000

// Effort at one node of the tree: rounds of the descent, and the share of the budget for the search from the placement
// that it suggests.
const (
	branchRounds     = 25
	branchSearch     = 32
	maxNeighbourhood = 10 // components that are placed again together
)

// branch splits the problem in two again and again, by a component and a place: it is there, or it is not. Each part
// has its own Lagrangian bound, starting from the prices of the whole; parts whose bound is no better than the best
// plan are closed. The part with the highest bound is next, so its bound is valid for everything that is left (Land and
// Doig, An automatic method of solving discrete programming problems, 1960; Fisher, The Lagrangian relaxation method
// for solving integer programming problems, 1981).
type branch struct {
	s     *State
	d     *dual
	sol   *Solution
	open  parts
	order []int32
	rank  []int32 // of each component in d.order
	count int
	seen  [][]int32 // by component and label: rounds with it there
	total int32
}

// part is a part of the problem, defined by a chain of decisions.
type part struct {
	*decision
	bound  float64
	number int
	y      []float64
}

type parts []part

func (p parts) Len() int { return len(p) }

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

// branch runs within the budget of the state and lowers the bound of the solution; it reports whether the solution is
// proven best. The solution must already place every component with a candidate.
func (s *State) branch(sol *Solution) bool {
	d := s.m.newDual(s.orch, nil, math.MaxInt, true)
	if d == nil {
		return false
	}
	d.must = true
	b := &branch{s: s, d: d, sol: sol, order: s.hardest(), seen: make([][]int32, len(s.m.Components))}
	b.rank = make([]int32, len(b.seen))
	for i, c := range d.order {
		b.rank[c] = int32(i)
	}
	for c := range b.seen {
		b.seen[c] = make([]int32, len(d.node))
	}
	b.visit(part{bound: sol.Bound, y: d.start()}, maxRounds)
	for len(b.open) > 0 && !b.closed(b.open[0].bound) && !b.tired() {
		b.visit(heap.Pop(&b.open).(part), branchRounds)
	}
	s.work += d.work
	if len(b.open) == 0 || b.closed(b.open[0].bound) {
		return true
	}
	sol.Bound = min(sol.Bound, s.m.rounded(b.open[0].bound))
	return false
}

func (b *branch) tired() bool { return b.s.work+b.d.work > b.s.budget }

// closed reports that nothing with this bound is better than the best known plan.
func (b *branch) closed(bound float64) bool {
	return b.s.m.rounded(bound) <= b.sol.Value+slack(b.sol.Value)
}

// visit bounds a part and splits it unless the bound closes it.
func (b *branch) visit(p part, rounds int) {
	if !b.d.restrict(p.decision) {
		return // some component has no place left
	}
	if b.leaf() {
		return
	}
	x := b.d.newDescent(p.y)
	b.forget()
	x.run(b.sol.Value, rounds, b.tired, func() float64 {
		b.remember()
		return b.sol.Value
	})
	p.bound = min(p.bound, x.bound+slack(x.bound))
	if b.closed(p.bound) {
		return
	}
	b.roundRelaxation(x.best)
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

// leaf handles a part in which every component has one label left: it is a plan, or breaks a rule that has no price.
func (b *branch) leaf() bool {
	for c := range b.s.At {
		if b.d.left[c] > 1 {
			return false
		}
	}
	b.s.clear()
	for c := range b.s.At {
		for l, ok := range b.d.mask[c] {
			if ok && b.s.Fits(int32(c), b.d.node[l]) {
				b.s.Put(int32(c), b.d.node[l])
			}
		}
	}
	b.sol.improveTo(b.s)
	return true
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

// pick chooses the component to split on: the one about which the relaxation was least sure, first about its cluster,
// then about its node.
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
