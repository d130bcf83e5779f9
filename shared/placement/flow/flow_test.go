package flow

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

var shapes = map[string]shape{
	"tiny":              {nodes: 4, arcs: 5, width: 2, cost: 4, supplies: 1, negative: true},
	"assignment-like":   {nodes: 10, arcs: 40, width: 1, cost: 9, supplies: 4},
	"degenerate":        {nodes: 8, arcs: 30, width: 2, cost: 1, supplies: 2},
	"negative costs":    {nodes: 7, arcs: 20, width: 5, cost: 9, supplies: 2, negative: true},
	"lower bounds":      {nodes: 6, arcs: 18, width: 6, cost: 9, supplies: 3, negative: true, lower: true},
	"no limits":         {nodes: 6, arcs: 14, width: 6, cost: 9, supplies: 3, inf: true},
	"everything":        {nodes: 9, arcs: 25, width: 5, cost: 9, supplies: 3, negative: true, lower: true, inf: true},
	"trees":             {nodes: 5, arcs: 8, width: 4, cost: 9, supplies: 2, trees: true},
	"trees, everything": {5, 8, 4, 9, 2, true, true, true, true},
	"circulation":       {nodes: 8, arcs: 30, width: 5, cost: 9, negative: true, trees: true},
	"dense":             {nodes: 4, arcs: 60, width: 3, cost: 20, supplies: 3, negative: true, lower: true},
}

// prove checks the answer, of whatever kind, by its own certificate.
func prove(t *testing.T, p *Problem, partial bool, sol *Solution, err error) {
	t.Helper()
	var none *InfeasibleError
	var endless *UnboundedError
	switch {
	case err == nil:
		require.NoError(t, sol.Verify(p))
	case errors.As(err, &none):
		require.ErrorIs(t, err, ErrInfeasible)
		require.NoError(t, none.VerifyCut(p, partial), "%+v", none)
	case errors.As(err, &endless):
		require.ErrorIs(t, err, ErrUnbounded)
		requireEndless(t, p, endless.Cycle)
	default:
		require.NoError(t, err)
	}
}

func requireEndless(t *testing.T, p *Problem, cycle []ArcID) {
	t.Helper()
	sum := int64(0)
	for i, id := range cycle {
		_, to, _, upper, cost, ok := p.Arc(id)
		require.True(t, ok)
		from, _, _, _, _, _ := p.Arc(cycle[(i+1)%len(cycle)])
		require.Equal(t, to, from, "the arcs of the cycle follow each other")
		require.EqualValues(t, Inf, upper)
		sum += cost
	}
	require.Negative(t, sum)
}

// compare solves p with s and with the reference.
func compare(t *testing.T, p *Problem, s *Solver) {
	t.Helper()
	sol, err := s.Solve()
	prove(t, p, s.Partial, sol, err)
	cost, sent, want := solveReference(p, s.Partial)
	if want != nil {
		require.ErrorIs(t, err, want)
		return
	}
	require.NoError(t, err)
	require.Equal(t, cost, sol.Cost)
	require.Equal(t, sent, sol.Sent)
}

func TestSolve_againstReference(t *testing.T) {
	t.Parallel()
	for name, k := range shapes {
		for _, partial := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s partial=%v", name, partial), func(t *testing.T) {
				t.Parallel()
				for seed := range uint64(400) {
					p := k.draw(rand.New(rand.NewPCG(seed, 1)))
					s := NewSolver(p)
					s.Partial = partial
					compare(t, p, s)
				}
			})
		}
	}
}

func TestSolve_againstEveryFlow(t *testing.T) {
	t.Parallel()
	k := shape{nodes: 4, arcs: 6, width: 3, cost: 5, supplies: 2, negative: true, lower: true}
	solved := 0
	for seed := range uint64(600) {
		p := k.draw(rand.New(rand.NewPCG(seed, 2)))
		best, found := exhaustive(p)
		sol, err := NewSolver(p).Solve()
		prove(t, p, false, sol, err)
		require.Equal(t, found, err == nil)
		if found {
			require.Equal(t, best, sol.Cost)
			solved++
		}
	}
	require.Greater(t, solved, 100)
}

// edits are the kinds of change after which a solve is warm.
var edits = map[string]func(p *Problem, k shape, r *rand.Rand){
	"costs": func(p *Problem, k shape, r *rand.Rand) {
		if id, ok := someArc(p, r); ok {
			_, _, cost := k.arc(r)
			p.SetCost(id, cost)
		}
	},
	"bounds": func(p *Problem, k shape, r *rand.Rand) {
		if id, ok := someArc(p, r); ok {
			lower, upper, _ := k.arc(r)
			p.SetBounds(id, lower, upper)
		}
	},
	"arcs added": func(p *Problem, k shape, r *rand.Rand) {
		lower, upper, cost := k.arc(r)
		p.AddArc(r.IntN(p.Nodes()), r.IntN(p.Nodes()), lower, upper, cost)
	},
	"arcs removed": func(p *Problem, _ shape, r *rand.Rand) {
		if id, ok := someArc(p, r); ok {
			p.RemoveArc(id)
		}
	},
	"supply": func(p *Problem, k shape, r *rand.Rand) {
		from, to, units := r.IntN(p.Nodes()), r.IntN(p.Nodes()), int64(r.IntN(k.width+1))
		p.SetSupply(from, p.Supply(from)+units)
		p.SetSupply(to, p.Supply(to)-units)
	},
	"nodes added": func(p *Problem, k shape, r *rand.Rand) {
		v := p.AddNode(0)
		for range 3 {
			lower, upper, cost := k.arc(r)
			p.AddArc(v, r.IntN(p.Nodes()), lower, upper, cost)
			lower, upper, cost = k.arc(r)
			p.AddArc(r.IntN(p.Nodes()), v, lower, upper, cost)
		}
	},
}

func someArc(p *Problem, r *rand.Rand) (ArcID, bool) {
	if p.Arcs() == 0 {
		return NoArc, false
	}
	for {
		id := ArcID(r.IntN(int(p.MaxArc())))
		if _, _, _, _, _, ok := p.Arc(id); ok {
			return id, true
		}
	}
}

func TestSolve_warmEqualsCold(t *testing.T) {
	t.Parallel()
	kinds := []string{"costs", "bounds", "arcs added", "arcs removed", "supply", "nodes added", "any"}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for name, k := range shapes {
				for seed := range uint64(30) {
					r := rand.New(rand.NewPCG(seed, 3))
					p := k.draw(r)
					warm := NewSolver(p)
					warm.Partial = seed%3 == 0
					keep := &Solution{}
					for range 8 {
						sol := keep
						if seed%2 == 0 || r.IntN(8) == 0 {
							sol = &Solution{}
						}
						err := warm.SolveInto(sol)
						prove(t, p, warm.Partial, sol, err)
						cold := NewSolver(p)
						cold.Partial = warm.Partial
						want, wantErr := cold.Solve()
						if wantErr != nil {
							require.IsType(t, wantErr, err, "%s, seed %d", name, seed)
						} else {
							require.NoError(t, err, "%s, seed %d", name, seed)
							require.Equal(t, want.Cost, sol.Cost)
							require.Equal(t, want.Sent, sol.Sent)
						}
						for range 1 + r.IntN(3) {
							what := kind
							if kind == "any" {
								what = kinds[r.IntN(len(kinds)-1)]
							}
							edits[what](p, k, r)
						}
						if kind == "any" && r.IntN(6) == 0 {
							warm.Partial = !warm.Partial
						}
					}
				}
			}
		})
	}
}

func TestSolve_propertiesOfCost(t *testing.T) {
	t.Parallel()
	k := shape{nodes: 8, arcs: 40, width: 5, cost: 9, supplies: 2, negative: true}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 4))
		p := k.draw(r)
		s := NewSolver(p)
		before, err := s.Solve()
		if err != nil {
			continue
		}
		_, upper, cost := k.arc(r)
		id := p.AddArc(r.IntN(p.Nodes()), r.IntN(p.Nodes()), 0, upper, cost)
		after, err := s.Solve()
		require.NoError(t, err)
		require.LessOrEqual(t, after.Cost, before.Cost, "one more arc never costs more")

		p.RemoveArc(id)
		again, err := s.Solve()
		require.NoError(t, err)
		require.Equal(t, before.Cost, again.Cost, "taking it out again restores the cost")

		for id := range p.MaxArc() {
			if _, _, _, _, cost, ok := p.Arc(id); ok {
				p.SetCost(id, 3*cost)
			}
		}
		scaled, err := s.Solve()
		require.NoError(t, err)
		require.Equal(t, 3*before.Cost, scaled.Cost, "costs scale")
	}
}

func TestSolve_repeatsItself(t *testing.T) {
	t.Parallel()
	p := scheduling(rand.New(rand.NewPCG(5, 5)), 40, 60)
	first, err := NewSolver(p).Solve()
	require.NoError(t, err)
	second, err := NewSolver(p).Solve()
	require.NoError(t, err)
	require.Equal(t, first, second)

	s := NewSolver(p)
	_, err = s.Solve()
	require.NoError(t, err)
	again, err := s.Solve()
	require.NoError(t, err)
	require.Zero(t, again.Pivots, "nothing has changed")
	require.Equal(t, first.flow, again.flow)
}

func TestSolve_treeStaysWhole(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 6))
		k := shapes["everything"]
		k.nodes, k.arcs = 30, 120
		s := NewSolver(k.draw(r))
		s.Partial = seed%2 == 0
		s.PivotLimit = 1
		for range 500 {
			_, err := s.Solve()
			if s.loaded {
				requireTree(t, s)
			}
			if !errors.Is(err, ErrLimit) {
				break
			}
		}
	}
}

// requireTree checks the indices of the tree against the parents, flows against capacities, and strong feasibility.
func requireTree(t *testing.T, s *Solver) {
	t.Helper()
	size := make([]int32, len(s.nodes))
	order := []int32{}
	place := make([]int, len(s.nodes))
	for v, i := s.root, 0; i < len(s.nodes); v, i = s.next[v], i+1 {
		place[v] = i
		order = append(order, v)
		require.Equal(t, v, s.prev[s.next[v]])
	}
	require.Equal(t, s.root, s.next[order[len(order)-1]])
	last := append([]int32(nil), order...)
	for i := len(order) - 1; i >= 0; i-- {
		v := order[i]
		size[v]++
		end := order[i+int(size[v])-1]
		last[i] = end
		require.Equal(t, size[v], s.nodes[v].size)
		require.Equal(t, end, s.nodes[v].last)
		if v == s.root {
			continue
		}
		n := &s.nodes[v]
		require.Less(t, place[n.parent], i)
		size[n.parent] += size[v]
		require.Positive(t, n.up, "some flow can still go to the root")
		require.GreaterOrEqual(t, n.down, int64(0))
		if n.arc >= 0 {
			require.Equal(t, s.caps[n.arc], n.up+n.down)
			a := s.arcs[n.arc]
			require.Zero(t, a.cost+s.pi[a.tail]-s.pi[a.head])
			require.ElementsMatch(t, []int32{v, n.parent}, []int32{a.tail, a.head})
		}
	}
}

// scheduling makes a graph like those of a cluster scheduler: tasks that prefer some machines, can use any other
// through a common node, or stay unscheduled at a price; machines with several sockets and cores.
func scheduling(r *rand.Rand, machines, tasks int) *Problem {
	p := NewProblem(3)
	const sink, any, out = 0, 1, 2
	p.SetSupply(sink, -int64(tasks))
	p.AddArc(out, sink, 0, int64(tasks), 0)
	var hosts []int
	for range machines {
		host := p.AddNode(0)
		hosts = append(hosts, host)
		p.AddArc(any, host, 0, 8, int64(r.IntN(200)))
		for range 2 {
			socket := p.AddNode(0)
			p.AddArc(host, socket, 0, 4, int64(r.IntN(200)))
			for range 4 {
				core := p.AddNode(0)
				p.AddArc(socket, core, 0, 1, int64(r.IntN(200)))
				p.AddArc(core, sink, 0, 1, 0)
			}
		}
	}
	for range tasks {
		task := p.AddNode(1)
		p.AddArc(task, any, 0, 1, int64(r.IntN(500)))
		p.AddArc(task, out, 0, 1, int64(500+r.IntN(500)))
		for range 5 {
			p.AddArc(task, hosts[r.IntN(machines)], 0, 1, int64(r.IntN(300)))
		}
	}
	return p
}

func TestSolve_small(t *testing.T) {
	t.Parallel()
	big := int64(1) << 62
	tests := map[string]struct {
		problem func() *Problem
		partial bool
		cost    int64
		err     error
	}{
		"no nodes":                  {problem: func() *Problem { return NewProblem(0) }},
		"zero problem":              {problem: func() *Problem { return &Problem{} }},
		"nodes alone":               {problem: func() *Problem { return NewProblem(3) }},
		"supply nowhere to go":      {problem: build("1 0"), err: ErrInfeasible},
		"demand without supply":     {problem: build("0 -1", "0 1 0 5 1"), err: ErrInfeasible},
		"supply less than demand":   {problem: build("1 -2", "0 1 0 5 1"), err: ErrInfeasible},
		"partly, less than demand":  {problem: build("1 -2", "0 1 0 5 7"), partial: true, cost: 7},
		"partly, nothing to do":     {problem: build("1 0"), partial: true},
		"partly, lower bound stays": {problem: build("5 -5", "0 1 3 4 2"), partial: true, cost: 8},
		"partly, bound impossible":  {problem: build("2 -5", "0 1 3 4 2"), partial: true, err: ErrInfeasible},
		"partly, however dear":      {problem: build("1 0 -1", "0 1 0 1 99", "1 2 0 1 99"), partial: true, cost: 198},
		"parallel arcs, cheap full": {problem: build("5 -5", "0 1 0 3 1", "0 1 0 9 4"), cost: 11},
		"negative self loop":        {problem: build("0", "0 0 0 7 -3"), cost: -21},
		"self loop at lower bound":  {problem: build("0", "0 0 2 7 3"), cost: 6},
		"endless self loop":         {problem: build("0", "0 0 0 inf -3"), err: ErrUnbounded},
		"endless ring":              {problem: build("0 0", "0 1 0 inf 1", "1 0 0 inf -3"), err: ErrUnbounded},
		"free ring, no gain":        {problem: build("0 0", "0 1 0 inf 3", "1 0 0 inf -3")},
		"ring with a limit":         {problem: build("0 0 0", "0 1 0 inf 1", "1 2 0 4 1", "2 0 0 inf -3"), cost: -4},
		"endless but infeasible":    {problem: build("1 0 0", "1 2 0 inf 1", "2 1 0 inf -3"), err: ErrInfeasible},
		"negative lower bound":      {problem: build("0 0", "0 1 -4 4 2", "1 0 0 0 0"), err: nil, cost: 0},
		"flows backwards":           {problem: build("-3 3", "0 1 -4 4 2"), cost: -6},
		"bounds equal":              {problem: build("2 -2", "0 1 2 2 5"), cost: 10},
		"bounds equal, wrong":       {problem: build("2 -2", "0 1 3 3 5"), err: ErrInfeasible},
		"circulation":               {problem: build("0 0", "0 1 0 3 -5", "1 0 0 2 1"), cost: -8},
		"wide arcs":                 {problem: build("1 -1", "0 1 0 big 1"), cost: 1},
		"wide arcs that fill":       {problem: build("0 0", "0 1 0 big -1", "1 0 0 big 0"), cost: -big},
		"flow just beyond 64 bits":  {problem: build("0 0", "0 1 0 big -1", "0 1 0 big -1", "1 0 0 inf 0"), err: ErrOverflow},
		"supply beyond 64 bits":     {problem: build("big big min", "0 2 0 inf 0", "1 2 0 inf 0"), err: ErrOverflow},
		"greatest supply":           {problem: build("inf -inf", "0 1 0 inf 1"), cost: Inf},
		"greatest supply, partly":   {problem: build("inf 0", "0 1 0 inf 1"), partial: true, err: ErrOverflow},
		"least demand, partly":      {problem: build("0 min", "0 1 0 inf 1"), partial: true, err: ErrOverflow},
		"cost beyond 64 bits":       {problem: build("big -big", "0 1 0 inf 8"), err: ErrOverflow},
		"least cost":                {problem: build("0 0", "0 1 0 1 min"), err: ErrOverflow},
		"dear arc":                  {problem: build("1 -1", "0 1 0 1 144115188075855872"), cost: 1 << 57},
		"bounds too far apart":      {problem: build("0 0", "0 1 min big 1"), err: ErrOverflow},
		"lower bounds add up":       {problem: build("0 0", "0 1 big inf 1", "0 1 big inf 1"), err: ErrOverflow},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := test.problem()
			require.NoError(t, p.Err())
			s := NewSolver(p)
			s.Partial = test.partial
			sol, err := s.Solve()
			require.ErrorIs(t, err, test.err)
			if !errors.Is(err, ErrOverflow) {
				prove(t, p, test.partial, sol, err)
			}
			if err == nil {
				require.Equal(t, test.cost, sol.Cost)
			}
			_, again := s.Solve()
			require.Equal(t, err, again)
		})
	}
}

// build returns a maker of a problem: the supplies, then "from to lower upper cost" for each arc.
func build(supplies string, arcs ...string) func() *Problem {
	return func() *Problem {
		p := &Problem{}
		for _, units := range fields(supplies) {
			p.AddNode(units)
		}
		for _, a := range arcs {
			x := fields(a)
			p.AddArc(int(x[0]), int(x[1]), x[2], x[3], x[4])
		}
		return p
	}
}

func fields(line string) (x []int64) {
	names := map[string]int64{"inf": Inf, "-inf": -Inf, "min": math.MinInt64, "big": 1 << 62, "-big": -1 << 62}
	for rest := []byte(line); ; {
		var f []byte
		if f, rest = field(rest); len(f) == 0 {
			return x
		}
		if units, ok := names[string(f)]; ok {
			x = append(x, units)
			continue
		}
		units, err := parse(f)
		if err != nil {
			panic(err)
		}
		x = append(x, units)
	}
}

func TestProblem_wrongCalls(t *testing.T) {
	t.Parallel()
	tests := map[string]func(p *Problem){
		"arc from nowhere":     func(p *Problem) { require.Equal(t, NoArc, p.AddArc(-1, 0, 0, 1, 1)) },
		"arc to nowhere":       func(p *Problem) { require.Equal(t, NoArc, p.AddArc(0, 2, 0, 1, 1)) },
		"bounds wrong way":     func(p *Problem) { require.Equal(t, NoArc, p.AddArc(0, 1, 2, 1, 1)) },
		"lower bound infinite": func(p *Problem) { require.Equal(t, NoArc, p.AddArc(0, 1, Inf, Inf, 1)) },
		"supply of no node":    func(p *Problem) { p.SetSupply(2, 1) },
		"cost of no arc":       func(p *Problem) { p.SetCost(1, 1) },
		"cost of NoArc":        func(p *Problem) { p.SetCost(NoArc, 1) },
		"new bounds wrong way": func(p *Problem) { p.SetBounds(0, 2, 1) },
		"removed twice": func(p *Problem) {
			p.RemoveArc(0)
			p.RemoveArc(0)
		},
	}
	for name, call := range tests {
		t.Run(name, func(t *testing.T) {
			p := NewProblem(2)
			p.AddArc(0, 1, 0, 1, 1)
			call(p)
			require.ErrorIs(t, p.Err(), ErrMalformed)
			_, err := NewSolver(p).Solve()
			require.ErrorIs(t, err, ErrMalformed)
		})
	}
	require.ErrorIs(t, NewProblem(-1).Err(), ErrMalformed)
	require.ErrorIs(t, NewProblem(maxNodes+1).Err(), ErrMalformed)
}

func TestVerify_wrongAnswers(t *testing.T) {
	t.Parallel()
	p := build("5 0 -5", "0 1 0 3 1", "0 2 1 9 4", "1 2 0 3 1")()
	tests := map[string]func(s *Solution){
		"too much on an arc":     func(s *Solution) { s.flow[0]++ },
		"flow lost on the way":   func(s *Solution) { s.flow[2]-- },
		"dear way taken":         func(s *Solution) { s.flow[0]--; s.flow[2]--; s.flow[1]++; s.Cost += 2 },
		"cost wrong":             func(s *Solution) { s.Cost-- },
		"sent wrong":             func(s *Solution) { s.Sent++ },
		"price wrong":            func(s *Solution) { s.offset[2] += 10 },
		"price at the edge":      func(s *Solution) { s.offset[0] = math.MaxInt64 },
		"another problem's":      func(s *Solution) { s.flow = s.flow[:2] },
		"units left, unexpected": func(s *Solution) { s.Partial = true },
	}
	for name, spoil := range tests {
		sol, err := NewSolver(p).Solve()
		require.NoError(t, err)
		require.NoError(t, sol.Verify(p))
		spoil(sol)
		require.ErrorIs(t, sol.Verify(p), ErrUnproved, name)
	}

	p = build("5 -5", "0 1 0 3 1")()
	for name, spoil := range map[string]func(s *Solution){
		"more could be sent": func(s *Solution) { s.flow[0]--; s.unmet[0]++; s.unmet[1]--; s.Cost--; s.Sent-- },
		"more sent than is":  func(s *Solution) { s.unmet[0] = 6 },
		"price too low":      func(s *Solution) { s.penalty = 1 },
	} {
		s := NewSolver(p)
		s.Partial = true
		sol, err := s.Solve()
		require.NoError(t, err)
		require.EqualValues(t, 2, sol.Unmet(0))
		require.EqualValues(t, -2, sol.Unmet(1))
		require.EqualValues(t, 3, sol.Sent)
		require.NoError(t, sol.Verify(p))
		spoil(sol)
		require.ErrorIs(t, sol.Verify(p), ErrUnproved, name)
	}

	e := &InfeasibleError{Short: 2, Cut: []int{0}}
	require.NoError(t, e.VerifyCut(p, false))
	require.ErrorIs(t, e.VerifyCut(p, true), ErrUnproved)
	for _, wrong := range []InfeasibleError{
		{Short: 3, Cut: []int{0}}, {Short: 2}, {Short: 2, Cut: []int{0, 0}}, {Short: 2, Cut: []int{9}},
	} {
		require.ErrorIs(t, wrong.VerifyCut(p, false), ErrUnproved)
	}
}

func TestSolve_pivotLimit(t *testing.T) {
	t.Parallel()
	p := scheduling(rand.New(rand.NewPCG(7, 7)), 20, 50)
	want, err := NewSolver(p).Solve()
	require.NoError(t, err)
	s := NewSolver(p)
	s.PivotLimit = 10
	var sol *Solution
	for sol == nil {
		if sol, err = s.Solve(); err != nil {
			require.ErrorIs(t, err, ErrLimit)
		}
	}
	require.Equal(t, want.Cost, sol.Cost)
}

// TestRules compares rules for the entering arc. Only the answers are checked; -v prints the pivots.
func TestRules(t *testing.T) {
	t.Parallel()
	p := scheduling(rand.New(rand.NewPCG(8, 8)), 100, 700)
	want, err := NewSolver(p).Solve()
	require.NoError(t, err)
	for name, rule := range rules {
		s := NewSolver(p)
		s.rule = rule
		sol, err := s.Solve()
		require.NoError(t, err)
		require.Equal(t, want.Cost, sol.Cost)
		t.Logf("%-16s %6d pivots", name, sol.Pivots)
	}
}

func FuzzSolve(f *testing.F) {
	f.Add([]byte{3, 1, 2, 0, 0, 1, 0, 3, 1, 1, 2, 0, 3, 250}, uint8(0))
	f.Add([]byte{2, 5, 251, 0, 1, 0, 2, 7, 0, 1, 255, 255, 1}, uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, mode uint8) {
		p, rest := fuzzProblem(data)
		s := NewSolver(p)
		s.Partial = mode&1 != 0
		for range 3 {
			small := true
			for _, units := range p.supply {
				small = small && magnitude(units) < 1000
			}
			for i := range p.arcs {
				a := &p.arcs[i]
				small = small && (a.upper == Inf || a.upper < 1000) && magnitude(a.cost) < 1000 && magnitude(a.lower) < 1000
			}
			if small {
				compare(t, p, s)
			} else if sol, err := s.Solve(); !errors.Is(err, ErrOverflow) {
				prove(t, p, s.Partial, sol, err)
			}
			for i := 0; i+2 < len(rest) && i < 9; i += 3 {
				fuzzEdit(p, rest[i:i+3])
			}
			if len(rest) > 9 {
				rest = rest[9:]
			}
		}
	})
}

// fuzzProblem reads a small problem: nodes, supplies, then five bytes per arc.
func fuzzProblem(data []byte) (*Problem, []byte) {
	if len(data) == 0 {
		return NewProblem(1), nil
	}
	n := 1 + int(data[0])%12
	data = data[1:]
	p := NewProblem(n)
	for v := range n {
		if len(data) == 0 {
			break
		}
		p.SetSupply(v, fuzzNumber(data[0]))
		data = data[1:]
	}
	if sum := p.Supply(0); n > 1 && magnitude(sum) < 1000 {
		p.SetSupply(n-1, -sum)
	}
	for len(data) >= 5 && p.Arcs() < 40 {
		lower := fuzzNumber(data[2])
		upper := lower
		if width := fuzzNumber(data[3]); width < 0 {
			upper = Inf
		} else if lower <= Inf-width {
			upper += width
		}
		if lower != Inf {
			p.AddArc(int(data[0])%n, int(data[1])%n, lower, upper, fuzzNumber(data[4]))
		}
		data = data[5:]
	}
	return p, data
}

// fuzzNumber is small for most bytes and extreme for some.
func fuzzNumber(b byte) int64 {
	switch b {
	case 128:
		return math.MinInt64
	case 127:
		return math.MaxInt64
	case 126:
		return 1 << 62
	case 125:
		return 1 << 55
	case 129:
		return -(1 << 62)
	}
	return int64(int8(b)) / 4
}

func fuzzEdit(p *Problem, b []byte) {
	if p.Arcs() == 0 {
		return
	}
	id := ArcID(int(b[1]) % int(p.MaxArc()))
	_, _, lower, upper, _, ok := p.Arc(id)
	switch b[0] % 4 {
	case 0:
		if ok {
			p.SetCost(id, fuzzNumber(b[2]))
		}
	case 1:
		if ok {
			p.RemoveArc(id)
		}
	case 2:
		if width := fuzzNumber(b[2]); ok && width >= 0 && lower <= Inf-width {
			p.SetBounds(id, lower, lower+width)
		}
	case 3:
		v := int(b[1]) % p.Nodes()
		p.AddArc(v, int(b[2])%p.Nodes(), min(lower, upper), upper, 1)
	}
}

func BenchmarkSolve(b *testing.B) {
	p := scheduling(rand.New(rand.NewPCG(9, 9)), 500, 3000)
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			if _, err := NewSolver(p).Solve(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("warm", func(b *testing.B) {
		r := rand.New(rand.NewPCG(10, 10))
		s := NewSolver(p)
		for b.Loop() {
			for range p.Arcs() / 100 {
				p.SetCost(ArcID(r.IntN(p.Arcs())), int64(r.IntN(500)))
			}
			if _, err := s.Solve(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, rule := range rules {
		b.Run("rule="+name, func(b *testing.B) {
			for b.Loop() {
				s := NewSolver(p)
				s.rule = rule
				if _, err := s.Solve(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
