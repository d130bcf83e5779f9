package placement_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/placement"
)

// slots makes a problem in which every component takes one slot.
func slots(r *rand.Rand, components, nodes int) placement.Problem {
	var p placement.Problem
	for i := range nodes {
		sca := float64(r.IntN(101))
		p.Nodes = append(p.Nodes, placement.Node{
			Orchestrator: "ocm", Cluster: fmt.Sprint("k", i%2), Name: fmt.Sprint("n", i), CPU: int64(r.IntN(4)) * 1000,
			SCA: &sca, Labels: map[string]string{"zone": fmt.Sprint(r.IntN(2))}, Unschedulable: r.IntN(10) == 0,
		})
	}
	for i := range components {
		c := placement.Component{ID: fmt.Sprint("c", i), CPU: 1000}
		if r.IntN(3) == 0 {
			c.Labels = map[string][]string{"zone": {fmt.Sprint(r.IntN(2))}}
		}
		if r.IntN(3) == 0 {
			at := p.Nodes[r.IntN(nodes)].Target()
			c.Current = &at
		}
		p.Components = append(p.Components, c)
	}
	return p
}

func TestUnitSlotsAreSolvedExactly(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 30))
		p := slots(r, 1+r.IntN(5), 1+r.IntN(4))
		p.Budget = 1 // a flow needs no budget
		plan := checked(t, p)
		placed, best := optimum(p)
		require.True(t, plan.Exact)
		require.Equal(t, placed, plan.Placed, "seed %d", seed)
		require.InDelta(t, best, plan.Objective, 1e-6, "seed %d", seed)
	}
}

// TestASolverThatRemembersIsAsTrue changes problems step by step.
func TestASolverThatRemembersIsAsTrue(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 31))
		var s placement.Solver
		unit := seed%2 == 0
		p := randomProblem(r, 2+r.IntN(3), 2+r.IntN(3))
		if unit {
			p = slots(r, 3+r.IntN(20), 2+r.IntN(10))
		}
		for step := range 6 {
			n := &p.Nodes[r.IntN(len(p.Nodes))]
			switch step % 3 {
			case 0:
				n.Unschedulable = !n.Unschedulable
			case 1:
				n.SCA = pointer(r.Float64() * 100)
			default:
				n.CPU = int64(r.IntN(4)) * 1000
			}
			warm, err := s.Place(p)
			require.NoError(t, err)
			require.True(t, legal(p, numbers(t, p, warm)))
			cold := checked(t, p)
			require.Equal(t, cold.Placed, warm.Placed, "seed %d step %d", seed, step)
			require.True(t, warm.Exact && cold.Exact)
			require.InDelta(t, cold.Objective, warm.Objective, 1e-6, "seed %d step %d", seed, step)
		}
	}
}

// TestALargeMoveCostBlursNothing: if nothing runs yet, no plan includes it.
func TestALargeMoveCostBlursNothing(t *testing.T) {
	t.Parallel()
	p := placement.Problem{
		Components: []placement.Component{{ID: "x"}},
		Nodes: []placement.Node{
			edge("a", "n1", func(n *placement.Node) { n.SCA = pointer(50) }),
			edge("a", "n2", func(n *placement.Node) { n.SCA = pointer(50.0001) }),
		},
		MoveCost: 1e9,
	}
	plan := checked(t, p)
	require.True(t, plan.Exact)
	require.Equal(t, "n2", plan.Assignments[0].Target.Node)
}
