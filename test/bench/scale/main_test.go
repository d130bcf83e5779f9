package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/placement"
)

// One application costs no more than in proportion to the nodes, in looks at them.
func TestWorkGrowsNoFasterThanTheNodes(t *testing.T) {
	t.Parallel()
	var before placement.Plan
	for i, nodes := range sizes {
		plan, err := placement.Place(application(20, nodes))
		require.NoError(t, err)
		require.Positive(t, plan.Work)
		if i > 0 {
			grown := float64(nodes) / float64(sizes[i-1])
			require.LessOrEqual(t, float64(plan.Work), grown*float64(before.Work), "%d nodes", nodes)
		}
		before = plan
	}
}

func TestViolationsAreCounted(t *testing.T) {
	t.Parallel()
	p := application(3, 10)
	plan, err := placement.Place(p)
	require.NoError(t, err)
	require.Zero(t, violations(p, plan))
	n := &p.Nodes[0]
	for i := range p.Nodes {
		if p.Nodes[i].Target() == plan.Assignments[0].Target {
			n = &p.Nodes[i]
		}
	}
	n.OtherCPU = n.CPU
	require.Equal(t, 1, violations(p, plan), "its cpu is taken")
	n.OtherCPU, n.Unschedulable = 0, true
	require.Positive(t, violations(p, plan), "it takes no work")
	p.Spreads = []placement.Spread{{Components: []string{"c00", "c01", "c02"}, By: "cluster", MaxShare: 0.4}}
	require.Greater(t, violations(p, plan), 1, "they are together")
}
