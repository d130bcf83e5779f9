package placement

import (
	"cmp"
	"math"
	"slices"
)

// state is a placement in the making: who is where, and what is left of every node. Its methods keep capacity,
// anti-affinity and spread; no search can break them.
type state struct {
	m      *model
	orch   int32   // the only orchestrator that may be used, or -1
	at     []int32 // component -> node, or -1
	on     [][]int32
	free   []int64
	placed int
	bound  []binding       // of each group
	sent   map[int64]int64 // bandwidth taken, by link
	spread [][]int32       // members of each spread in each domain
	work   int64
	budget int64
}

func (m *model) newState(orch int32, budget int64) *state {
	s := &state{
		m: m, orch: orch, budget: budget,
		at: make([]int32, len(m.comps)), on: make([][]int32, len(m.nodes)), free: slices.Clone(m.free),
		bound: make([]binding, len(m.groups)), sent: make(map[int64]int64), spread: make([][]int32, len(m.spreads)),
	}
	for c := range s.at {
		s.at[c] = -1
	}
	for i := range m.spreads {
		s.spread[i] = make([]int32, len(m.spreads[i].names))
	}
	return s
}

// binding is the orchestrator that the placed components of a group have in common, if the group demands one.
type binding struct {
	orch   int32
	placed int
}

// foreign says whether the group of the component is bound to another orchestrator than the node's.
func (s *state) foreign(c, n int32) bool {
	g := s.m.comps[c].group
	return s.m.groups[g].OneOrchestrator && s.bound[g].placed > 0 && s.bound[g].orch != s.m.nodes[n].orch
}

// restore returns the state of a known placement; a component that does not fit where at has it is left out.
func (m *model) restore(at []int32) *state {
	s := m.newState(-1, math.MaxInt64)
	for c, n := range at {
		if n >= 0 && s.fits(int32(c), n) {
			s.put(int32(c), n)
		}
	}
	return s
}

// fits says whether the component may go to the node beside all that is placed.
func (s *state) fits(c, n int32) bool {
	s.work++
	m, comp := s.m, &s.m.comps[c]
	cl := &m.classes[comp.class]
	if cl.at[n] < 0 || (s.orch >= 0 && m.nodes[n].orch != s.orch) || !s.roomy(cl, n) ||
		s.foreign(c, n) || (comp.limited && !s.wired(c, n)) {
		return false
	}
	for _, x := range comp.apart {
		if s.at[x] == n {
			return false
		}
	}
	for _, i := range comp.spreads {
		if sp := &m.spreads[i]; s.spread[i][sp.domain[n]] >= sp.limit {
			return false
		}
	}
	return true
}

// roomy says whether the node has enough of everything left for a component of the class.
func (s *state) roomy(cl *class, n int32) bool {
	free := s.free[int(n)*len(s.m.dims):]
	for _, d := range cl.demand {
		if d.amount > free[d.dim] {
			return false
		}
	}
	return true
}

// put places a component that fits; take removes it again.
func (s *state) put(c, n int32) {
	s.at[c] = n
	s.on[n] = append(s.on[n], c)
	s.charge(c, n, -1)
}

func (s *state) take(c int32) int32 {
	n := s.at[c]
	s.at[c] = -1
	i := slices.Index(s.on[n], c)
	s.on[n] = slices.Delete(s.on[n], i, i+1)
	s.charge(c, n, 1)
	return n
}

func (s *state) charge(c, n int32, sign int64) {
	m, comp := s.m, &s.m.comps[c]
	free := s.free[int(n)*len(m.dims):]
	for _, d := range m.classes[comp.class].demand {
		free[d.dim] += sign * d.amount
	}
	s.placed -= int(sign)
	s.bound[comp.group].orch = m.nodes[n].orch
	s.bound[comp.group].placed -= int(sign)
	if comp.limited {
		s.send(c, n, -sign)
	}
	for _, i := range comp.spreads {
		s.spread[i][m.spreads[i].domain[n]] -= int32(sign)
	}
}

// value returns what the component earns at the candidate node with the partners that are placed.
func (s *state) value(c, n int32) float64 {
	v := s.m.points(c, n)
	for i := range s.m.edges[c] {
		e := &s.m.edges[c][i]
		if at := s.at[e.to]; at >= 0 {
			v += e.weight * s.m.closeness(e, n, at)
		}
	}
	s.work += int64(len(s.m.edges[c]))
	return v
}

// total returns how many components are placed and the objective.
func (s *state) total() (int, float64) {
	placed, sum := 0, 0.0
	for c, n := range s.at {
		if n < 0 {
			continue
		}
		placed++
		sum += s.m.points(int32(c), n)
		for i := range s.m.edges[c] {
			e := &s.m.edges[c][i]
			if at := s.at[e.to]; int(e.to) > c && at >= 0 {
				sum += e.weight * s.m.closeness(e, n, at)
			}
		}
		s.work += int64(1 + len(s.m.edges[c]))
	}
	return placed, sum
}

// tired is how many candidates best looks at for one component once the budget is spent: the pass in progress ends
// quickly and still finds most of what there is to find.
const tired = 256

// best returns the node where an unplaced component earns most beside what is placed, and what it earns; -1 when it
// fits nowhere.
func (s *state) best(c int32) (int32, float64) { return s.bestOf(c, nil) }

// bestOf is best without the candidates known to be full, where the caller keeps account of these. Candidates come by
// falling points, so the look ends where points plus all affinity in reach cannot win any more.
func (s *state) bestOf(c int32, open *open) (int32, float64) {
	m, comp := s.m, &s.m.comps[c]
	cl := &m.classes[comp.class]
	node, value := int32(-1), math.Inf(-1)
	try := func(n int32) {
		if s.fits(c, n) {
			if v := s.value(c, n); v > value || (v == value && n < node) {
				node, value = n, v
			}
		}
	}
	for k, n := range comp.home { // worth more than their points say
		if k >= tired && s.spent() {
			break
		}
		try(n)
	}
	var reach float64
	for _, e := range m.edges[c] {
		if s.at[e.to] >= 0 {
			reach += e.weight
		}
	}
	for k, looked := open.next(0), 0; k < len(cl.nodes); k, looked = open.next(k+1), looked+1 {
		if node >= 0 && cl.points[k]+reach <= value || looked >= tired && s.spent() {
			break
		}
		if open != nil && !s.roomy(cl, cl.nodes[k]) {
			s.work++
			open.close(k)
			continue
		}
		try(cl.nodes[k])
	}
	return node, value
}

// open keeps account of the candidates of a class that have room left, while nothing is taken out: after[k] leads from
// candidate k towards the first open one from there on.
type open struct{ after []int32 }

func newOpen(n int) *open {
	o := &open{make([]int32, n+1)}
	for k := range o.after {
		o.after[k] = int32(k)
	}
	return o
}

// next returns the first open candidate from k on; without an account that is k.
func (o *open) next(k int) int {
	if o == nil {
		return k
	}
	for int(o.after[k]) != k {
		o.after[k] = o.after[o.after[k]] // halve the path for the next time
		k = int(o.after[k])
	}
	return k
}

func (o *open) close(k int) { o.after[k] = int32(k + 1) }

// bestIn is best within one cluster.
func (s *state) bestIn(c, cluster int32) (int32, float64) {
	node, value := int32(-1), math.Inf(-1)
	for n := s.m.clusters[cluster]; n < s.m.clusters[cluster+1]; n++ {
		if s.fits(c, n) {
			if v := s.value(c, n); v > value {
				node, value = n, v
			}
		}
	}
	return node, value
}

func (s *state) spent() bool { return s.work > s.budget }

// solution is the outcome of a search, in the solver's terms: staying home earns the move cost.
type solution struct {
	at          []int32
	placed      int
	value       float64
	placedBound int
	bound       float64
	exact       bool
	orch        int32
	work        int64
	prices      []Price
	capacity    map[scarce]float64 // for the next problem
}

// better compares by placed, then by value; differences below rounding are none.
func better(placed int, value float64, thanPlaced int, thanValue float64) bool {
	if placed != thanPlaced {
		return placed > thanPlaced
	}
	return value > thanValue+slack(thanValue)
}

// slack is the rounding to expect in a sum of about v points.
func slack(v float64) float64 { return 1e-9 * max(1, math.Abs(v)) }

// solve finds a placement for the whole problem: once, or once for each orchestrator when all must share one.
func (m *model) solve() solution {
	budget := m.p.Budget
	if budget == 0 {
		budget = min(MaxBudget, DefaultBudget+BudgetPerComponent*int64(len(m.comps))+BudgetPerNode*int64(len(m.nodes)))
	}
	if len(m.p.Groups) > 0 || !m.p.OneOrchestrator || len(m.orchs) <= 1 {
		sol := m.solveWithin(-1, budget)
		if len(m.orchs) == 1 {
			sol.orch = 0
		}
		sol.work += m.work
		return sol
	}
	var out solution
	work := m.work
	exact, placedBound, bound := true, 0, 0.0
	tried := m.likeliest()
	if left := len(tried) - maxOrchestrators; left > 0 { // the bounds without the rule hold for those left out too
		tried = tried[:maxOrchestrators]
		s := m.newState(-1, budget/4)
		exact, placedBound, bound = false, s.placedBound(), s.looseBound()
		work += s.work
	}
	for i, o := range tried {
		sol := m.solveWithin(o, budget/int64(len(tried)))
		work += sol.work
		exact = exact && sol.exact
		placedBound, bound = max(placedBound, sol.placedBound), max(bound, sol.bound)
		if i == 0 || better(sol.placed, sol.value, out.placed, out.value) {
			out = sol
		}
	}
	out.work, out.exact, out.placedBound, out.bound = work, exact, placedBound, bound
	if out.placed == placedBound && bound <= out.value+slack(out.value) {
		out.exact = true
	}
	if out.exact {
		out.placedBound, out.bound = out.placed, out.value
	}
	return out
}

// maxOrchestrators is how many types are tried when all components must share one; there are three in practice.
const maxOrchestrators = 16

// likeliest orders the orchestrators by how many components have a candidate there, ties by name.
func (m *model) likeliest() []int32 {
	members := make([]int, len(m.classes))
	for i := range m.comps {
		members[m.comps[i].class]++
	}
	able, order := make([]int, len(m.orchs)), make([]int32, len(m.orchs))
	for o := range m.orchs {
		order[o] = int32(o)
		for i := range m.classes {
			if m.classes[i].inOrch[o] > 0 {
				able[o] += members[i]
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(able[b], able[a]) })
	return order
}

// solveWithin runs the stages: greedy starts, the Lagrangian bound with the starts that it suggests, local search, and
// branch and bound when the problem is small.
func (m *model) solveWithin(orch int32, budget int64) solution {
	split := len(m.comps)*len(m.nodes) <= maxBranched
	s := m.newState(orch, budget)
	if split {
		s.budget = budget * 5 / 8
	}
	if sol, ok := m.last.unit.solve(s); ok {
		return sol
	}
	sol := solution{orch: orch, placedBound: s.placedBound(), bound: math.Inf(1)}
	s.starts(&sol)
	s.lagrangian(&sol, budget*3/8)
	s.reset(sol.at)
	if !sol.proven() {
		s.improve()
		sol.take(s)
	}
	sol.exact = sol.proven()
	if !sol.exact && s.small() {
		s.budget = budget
		sol.exact = s.exact(&sol)
	}
	if !sol.exact && split && sol.placed == m.placeable(orch) {
		s.budget = budget
		sol.exact = s.branch(&sol)
	}
	if sol.exact {
		sol.placedBound, sol.bound = sol.placed, sol.value
	}
	sol.work = s.work
	return sol
}

// proven says whether the bounds leave nothing to win.
func (sol *solution) proven() bool {
	return sol.placed == sol.placedBound && sol.bound <= sol.value+slack(sol.value)
}

// take keeps the state as the solution if it is better.
func (sol *solution) take(s *state) bool {
	placed, value := s.total()
	if sol.at != nil && !better(placed, value, sol.placed, sol.value) {
		return false
	}
	sol.at, sol.placed, sol.value = append(sol.at[:0], s.at...), placed, value
	return true
}

// starts finds a first solution: what may stay stays, the rest goes to its best node, in several orders.
func (s *state) starts(sol *solution) {
	hardest := s.hardest()
	connected, _ := s.connected()
	smallest := slices.Clone(hardest) // fits the most when there is not room for all
	slices.Reverse(smallest)
	if len(s.m.last.at) > 0 {
		s.recall()
		s.greedy(hardest)
		sol.take(s)
	}
	for i, order := range [][]int32{hardest, connected, smallest} {
		if i == 2 && sol.placed == sol.placedBound {
			break
		}
		s.clear()
		s.keep()
		s.greedy(order)
		sol.take(s)
		if s.spent() {
			break
		}
	}
}

// lagrangian finds the bound of the solution, and better solutions near those of the relaxed problem.
func (s *state) lagrangian(sol *solution, budget int64) {
	whole := s.budget
	s.budget = min(whole, s.work+budget)
	defer func() { s.budget = whole }()
	sol.bound = s.looseBound()
	if sol.proven() || s.spent() {
		return
	}
	d := s.m.newDual(s.orch, sol.at, shortlist, false)
	if d == nil {
		return
	}
	d.must = sol.placed == s.m.placeable(s.orch)
	y := d.start()
	d.recall(y)
	x := d.newDescent(y)
	order := s.hardest()
	lowest, spent := math.Inf(1), int64(len(d.node)*len(order)) // bound at the last start, and what it cost
	try := func() {
		lowest, spent = x.bound, s.work
		s.plant(d, x.best, order)
		sol.take(s)
		spent = d.work + s.work - spent // no more on starts than on bounds
	}
	x.run(sol.value, maxRounds, func() bool { return s.work+d.work > s.budget }, func() float64 {
		if x.bound < lowest && d.work >= spent {
			try()
		}
		return sol.value
	})
	try()
	s.work += d.work
	sol.bound = min(sol.bound, s.m.rounded(x.bound+slack(x.bound)))
	sol.prices, sol.capacity = d.priced(x.best), d.capacity(x.best)
}

// shortlist is how many nodes of each cluster, per class, the relaxation looks at one by one.
const shortlist = 64

// placeable returns how many components have a candidate.
func (m *model) placeable(orch int32) int {
	able := 0
	for c := range m.comps {
		if cl := &m.classes[m.comps[c].class]; (orch < 0 && len(cl.nodes) > 0) || (orch >= 0 && cl.inOrch[orch] > 0) {
			able++
		}
	}
	return able
}

// repair makes a placement of where the relaxation put the components last: as many as fit stay, the rest goes one by
// one where it is best.
func (s *state) repair(d *dual, order []int32) {
	s.clear()
	for _, c := range order {
		if l := d.at[c]; l >= 0 && d.node[l] >= 0 && s.fits(c, d.node[l]) {
			s.put(c, d.node[l])
		}
	}
	s.greedy(order)
}

// plant makes a placement from prices: tree after tree goes where it is worth most after them, on what the trees before
// left free. What does not fit together then goes one by one where it is best.
func (s *state) plant(d *dual, y []float64, order []int32) {
	s.clear()
	d.evaluate(y, nil) // settles the orchestrators of groups
	d.beside = s
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
			d.settle(c)
		}
		for _, c := range tree {
			if l := d.at[c]; l >= 0 && s.fits(c, d.node[l]) {
				s.put(c, d.node[l])
			}
		}
		d.work += int64(len(tree)*len(d.node)) / 2
	}
	d.beside = nil
	s.greedy(order)
}

// clear takes every component out; reset brings the state to a known placement.
func (s *state) clear() {
	for c, n := range s.at {
		if n >= 0 {
			s.take(int32(c))
		}
	}
}

func (s *state) reset(at []int32) {
	s.clear()
	for c, n := range at {
		if n >= 0 {
			s.put(int32(c), n)
		}
	}
}

// keep leaves the components that may stay where they are.
func (s *state) keep() {
	for c := range s.m.comps {
		node, value := int32(-1), 0.0
		for k, n := range s.m.comps[c].home {
			if k >= tired && s.spent() {
				break
			}
			if s.fits(int32(c), n) {
				if v := s.value(int32(c), n); node < 0 || v > value {
					node, value = n, v
				}
			}
		}
		if node >= 0 {
			s.put(int32(c), node)
		}
	}
}

// greedy places the components that have no place yet, each at its best node.
func (s *state) greedy(order []int32) {
	rooms := make([]*open, len(s.m.classes))
	for _, c := range order {
		if s.at[c] >= 0 {
			continue
		}
		k := s.m.comps[c].class
		if rooms[k] == nil {
			rooms[k] = newOpen(len(s.m.classes[k].nodes))
		}
		if n, _ := s.bestOf(c, rooms[k]); n >= 0 {
			s.put(c, n)
		}
	}
}

// hardest orders components by how hard they are to place: few candidates first, then the largest demand.
func (s *state) hardest() []int32 {
	m := s.m
	whole := make([]float64, len(m.dims)) // of each dim over all nodes
	for n := range m.nodes {
		for d := range m.dims {
			whole[d] += float64(m.free[n*len(m.dims)+d])
		}
	}
	large := make([]float64, len(m.classes)) // the largest share of a dim that one member takes
	for i := range m.classes {
		for _, d := range m.classes[i].demand {
			large[i] = max(large[i], float64(d.amount)/max(1, whole[d.dim]))
		}
	}
	order := make([]int32, len(m.comps))
	for c := range order {
		order[c] = int32(c)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := m.comps[a].class, m.comps[b].class
		return cmp.Or(cmp.Compare(len(m.classes[x].nodes), len(m.classes[y].nodes)), cmp.Compare(large[y], large[x]))
	})
	return order
}

// connected orders components so that each follows the one it is joined to, the hardest of a set first. starts holds
// where each set of joined components begins.
func (s *state) connected() (order []int32, starts []int) {
	seen := make([]bool, len(s.m.comps))
	order = make([]int32, 0, len(s.m.comps))
	for _, root := range s.hardest() {
		if seen[root] {
			continue
		}
		seen[root] = true
		starts = append(starts, len(order))
		order = append(order, root)
		for next := len(order) - 1; next < len(order); next++ {
			es := slices.Clone(s.m.edges[order[next]])
			slices.SortStableFunc(es, func(a, b edge) int { return cmp.Compare(b.weight, a.weight) })
			for _, e := range es {
				if !seen[e.to] {
					seen[e.to] = true
					order = append(order, e.to)
				}
			}
		}
	}
	return order, starts
}

// placedBound returns how many components can be placed at most: those with a candidate, and no more than the smallest
// demands of each kind that the sum of the nodes can hold.
func (s *state) placedBound() int {
	m := s.m
	var able []int32
	for c := range m.comps {
		cl := &m.classes[m.comps[c].class]
		if (s.orch < 0 && len(cl.nodes) > 0) || (s.orch >= 0 && cl.inOrch[s.orch] > 0) {
			able = append(able, int32(c))
		}
	}
	needs := make([][]int64, len(m.dims))
	for _, c := range able {
		for _, a := range m.classes[m.comps[c].class].demand {
			needs[a.dim] = append(needs[a.dim], a.amount)
		}
	}
	most := len(able)
	for d, need := range needs {
		var whole, sum int64
		for n := range m.nodes {
			if s.orch < 0 || m.nodes[n].orch == s.orch {
				whole = addUp(whole, m.free[n*len(m.dims)+d])
			}
		}
		slices.Sort(need)
		for i, v := range need {
			if sum = addUp(sum, v); sum > whole {
				most = min(most, len(able)-len(need)+i)
				break
			}
		}
	}
	return most
}

// addUp adds without overflow: the largest number stands for itself and all above.
func addUp(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// bound returns a value that no placement can pass: every component at its best candidate, with half of each affinity
// counted on either side at the largest factor that the partner's candidates allow.
//
//	bound = sum over c of max over n of (points(c,n) + 1/2 sum over partners d of w(c,d) * reach(c,d,n))
func (s *state) looseBound() float64 {
	m := s.m
	var sum float64
	for c := range m.comps {
		c := int32(c)
		cl := &m.classes[m.comps[c].class]
		var all float64 // half of every weight: the most that affinities can add
		for _, e := range m.edges[c] {
			all += e.weight / 2
		}
		best := 0.0
		look := func(n int32) {
			if s.orch >= 0 && m.nodes[n].orch != s.orch {
				return
			}
			v := m.points(c, n)
			if s.spent() {
				v += all
			} else {
				for i := range m.edges[c] {
					e := &m.edges[c][i]
					v += e.weight / 2 * m.reach(c, e, n)
				}
				s.work += int64(1 + len(m.edges[c]))
			}
			best = max(best, v)
		}
		for _, n := range m.comps[c].home {
			if s.spent() {
				best = max(best, cl.points[0]+m.move+all)
				break
			}
			look(n)
		}
		for k, n := range cl.nodes {
			if cl.points[k]+all <= best {
				break
			}
			look(n)
		}
		sum += best
	}
	return sum
}
