package placement_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/placement"
)

// TestExplain_callsComponentsByTheirNames, which two groups may both have; what people read says whose they are.
func TestExplain_callsComponentsByTheirNames(t *testing.T) {
	t.Parallel()
	web := func(group string, cpu int64, apart ...string) placement.Component {
		return placement.Component{ID: group + ":web", Name: "web", Group: group, CPU: cpu, AntiAffinity: apart}
	}
	p := placement.Problem{
		Nodes: []placement.Node{{Orchestrator: "ocm", Cluster: "k", Name: "n", CPU: 4000}},
		Groups: []placement.Group{
			{ID: "1", Name: "shop", Weights: placement.Weights{Performance: 1}},
			{ID: "2", Name: "cafe", Weights: placement.Weights{Performance: 1}},
		},
		Components: []placement.Component{
			web("1", 3000), {ID: "1:db", Name: "db", Group: "1", CPU: 2000}, web("2", 2000, "1:web"),
		},
		Affinities: []placement.Affinity{{A: "1:web", B: "1:db", Weight: 1}, {A: "1:web", B: "2:web", Weight: 1}},
	}
	plan := placement.Plan{Assignments: []placement.Assignment{
		{Component: "1:web", Placed: true, Target: p.Nodes[0].Target()}, {Component: "1:db"}, {Component: "2:web"},
	}}
	ex := placement.Explain(p, plan).Components
	require.Equal(t, "needs 2 cores, 1 free of 4, 3 taken by web", ex[1].Nodes[0].Failures[0].Detail)
	require.Equal(t, "web", ex[1].Nodes[0].Affinity[0].With)
	require.Equal(t, "1:db", ex[1].Component, "what reads it knows the ids")

	other := map[placement.Rule]placement.Failure{}
	for _, f := range ex[2].Nodes[0].Failures {
		other[f.Rule] = f
	}
	require.Equal(t, "needs 2 cores, 1 free of 4, 3 taken by shop/web", other[placement.RuleCPU].Detail)
	require.Equal(t, "shop/web", other[placement.RuleAntiAffinity].Key)
	require.Equal(t, "must not share a node with shop/web, which is here", other[placement.RuleAntiAffinity].Detail)
	require.Equal(t, "shop/web", ex[2].Nodes[0].Affinity[0].With)

	p.Components[0].CPU, p.Components[2].CPU = 1000, 1000
	alone := placement.Explain(p, plan).Components[2].Relaxation
	require.NotNil(t, alone, "the rule is found by its id, and is given up")
	require.Equal(t, "allow it on the node of shop/web", alone.Changes[0].Detail)
}
