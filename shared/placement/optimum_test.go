package placement_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/placement"
)

// TestPlaceFindsTheOptimum compares with every placement there is.
func TestPlaceFindsTheOptimum(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		p := randomProblem(r, 1+r.IntN(4), 1+r.IntN(5))
		plan := checked(t, p)
		placed, best := optimum(p)
		require.True(t, plan.Exact, "seed %d: a problem this small is solved exactly", seed)
		require.Equal(t, placed, plan.Placed, "seed %d", seed)
		require.InDelta(t, best, plan.Objective, 1e-6, "seed %d", seed)
	}
}

// TestBoundsHoldWithoutProof gives the search almost no budget, so the bounds stand alone.
func TestBoundsHoldWithoutProof(t *testing.T) {
	t.Parallel()
	open := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 8))
		p := randomProblem(r, 1+r.IntN(4), 1+r.IntN(5))
		p.Budget = 1 + int64(r.IntN(100))
		plan := checked(t, p)
		placed, best := optimum(p)
		require.GreaterOrEqual(t, plan.PlacedBound, placed, "seed %d", seed)
		require.GreaterOrEqual(t, plan.Bound, best-1e-7*max(1, math.Abs(best)), "seed %d", seed)
		require.LessOrEqual(t, plan.Placed, placed, "seed %d", seed)
		if plan.Exact {
			require.InDelta(t, best, plan.Objective, 1e-6, "seed %d", seed)
		} else {
			open++
		}
	}
	require.Greater(t, open, 20, "the test is about plans without proof")
}

// TestDualBoundsHold compares the relaxation alone, after a few prices, with the best of all placements.
func TestDualBoundsHold(t *testing.T) {
	t.Parallel()
	tight := 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 20))
		p := randomProblem(r, 1+r.IntN(4), 1+r.IntN(5))
		placed, best := optimum(p)
		for _, perCluster := range []int{0, 1, 5} {
			bound := placement.DualBound(p, perCluster, placed, seed%2 == 0)
			require.GreaterOrEqual(t, bound, best-1e-7*max(1, math.Abs(best)), "seed %d, %d per cluster", seed, perCluster)
			if bound < best+1e-3*max(1, math.Abs(best)) {
				tight++
			}
		}
	}
	require.Greater(t, tight, 400, "most bounds are close")
}

// TestBranchingFindsTheOptimum runs the branch and bound for medium problems on small ones, some with too little budget
// to finish.
func TestBranchingFindsTheOptimum(t *testing.T) {
	t.Parallel()
	ended, open := 0, 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 21))
		p := randomProblem(r, 2+r.IntN(3), 2+r.IntN(4))
		budget := int64(1_000_000)
		if seed%3 == 0 {
			budget = int64(r.IntN(100))
		}
		objective, bound, exact, ok := placement.Branched(p, budget)
		if !ok {
			continue
		}
		placed, best := optimum(p)
		if placed < len(p.Components) {
			continue
		}
		require.LessOrEqual(t, objective, best+1e-6, "seed %d", seed)
		if exact {
			ended++
			require.InDelta(t, best, objective, 1e-6, "seed %d", seed)
			continue
		}
		open++
		require.GreaterOrEqual(t, bound, best-1e-6, "seed %d", seed)
	}
	require.Greater(t, ended, 50)
	require.Greater(t, open, 5)
}

// TestOrderOfInputDoesNotMatter shuffles everything without a meaningful order.
func TestOrderOfInputDoesNotMatter(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 9))
		p := randomProblem(r, 12, 15)
		p.Budget = 200_000
		p.Scores = nil // which depends on positions
		plan := checked(t, p)
		q := p
		q.Components, q.Nodes = slices.Clone(p.Components), slices.Clone(p.Nodes)
		r.Shuffle(len(q.Components), func(i, j int) {
			q.Components[i], q.Components[j] = q.Components[j], q.Components[i]
		})
		r.Shuffle(len(q.Nodes), func(i, j int) { q.Nodes[i], q.Nodes[j] = q.Nodes[j], q.Nodes[i] })
		other := checked(t, q)
		require.InDelta(t, plan.Objective, other.Objective, 1e-7)
		require.ElementsMatch(t, targets(plan), targets(other), "seed %d", seed)
	}
}

func targets(plan placement.Plan) []string {
	var out []string
	for _, a := range plan.Assignments {
		out = append(out, a.Component+"@"+a.Target.Orchestrator+"/"+a.Target.Cluster+"/"+a.Target.Node)
	}
	return out
}

// TestMediumProblemsStayLegal covers the sizes at which only search works.
func TestMediumProblemsStayLegal(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 10))
		p := randomProblem(r, 80, 300)
		p.Budget = 500_000
		plan := checked(t, p)
		require.Less(t, plan.Gap, 0.5)
	}
}

// TestNothingMovesThatMayStay checks plans of running applications: moving any one component back to its former place,
// with all others as planned, must be impossible or a loss.
func TestNothingMovesThatMayStay(t *testing.T) {
	t.Parallel()
	moved := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 11))
		p := randomProblem(r, 2+r.IntN(8), 2+r.IntN(8))
		p.MoveCost = 0
		plan := checked(t, p)
		at := numbers(t, p, plan)
		for i, a := range plan.Assignments {
			if !a.Moved {
				continue
			}
			moved++
			require.NotEmpty(t, a.Reason)
			back := slices.Clone(at)
			for k, n := range p.Nodes {
				if back[i] = k; covers(*p.Components[i].Current, n) && legal(p, back) {
					_, v := worth(p, back)
					require.Less(t, v, plan.Objective, "seed %d: %s had no need to move", seed, a.Component)
				}
			}
		}
	}
	require.Greater(t, moved, 50)
}

// TestLargeProblemsEnd places more components than the search could examine pair by pair.
func TestLargeProblemsEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	many := func(components, nodes int) placement.Problem {
		var p placement.Problem
		for i := range components {
			p.Components = append(p.Components, placement.Component{ID: "c" + strconv.Itoa(i), CPU: 100, Memory: 1 << 20})
		}
		for i := range nodes {
			p.Nodes = append(p.Nodes, placement.Node{
				Orchestrator: "ocm", Cluster: "k" + strconv.Itoa(i%20), Name: "n" + strconv.Itoa(i), CPU: 4000, Memory: 8 << 30,
			})
		}
		p.Budget = 2_000_000
		return p
	}
	t.Run("a hundred thousand equal components fill a thousand nodes", func(t *testing.T) {
		t.Parallel()
		plan, err := placement.Place(many(100_000, 1000))
		require.NoError(t, err)
		require.Equal(t, 40_000, plan.Placed)
		require.Equal(t, 40_000, plan.PlacedBound)
	})
	t.Run("a chain of affinities through all of them ends too", func(t *testing.T) {
		t.Parallel()
		p := many(100_000, 3000)
		for i := 1; i < len(p.Components); i++ {
			p.Affinities = append(p.Affinities, placement.Affinity{
				A: p.Components[i-1].ID, B: p.Components[i].ID, Weight: 10,
			})
		}
		plan, err := placement.Place(p)
		require.NoError(t, err)
		require.Equal(t, 100_000, plan.Placed)
	})
	t.Run("as many different ones on too many nodes are refused", func(t *testing.T) {
		t.Parallel()
		p := many(100_000, 3000)
		for i := range p.Components {
			p.Components[i].CPU = int64(i)
		}
		_, err := placement.Place(p)
		require.ErrorContains(t, err, "too large")
	})
}
