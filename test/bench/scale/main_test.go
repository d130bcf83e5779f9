package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/placement"
)

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
