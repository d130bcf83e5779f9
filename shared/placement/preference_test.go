package placement_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/placement"
)

// TestPreferences: points of preferences are added to scores for the components that have them, and the explanation says so.
func TestPreferences(t *testing.T) {
	t.Parallel()
	node := func(name string) placement.Node {
		return placement.Node{Orchestrator: "ocm", Cluster: "c", Name: name, CPU: 4000, Memory: 8 << 30}
	}
	p := placement.Problem{
		Nodes:      []placement.Node{node("a"), node("b"), node("c")},
		Components: []placement.Component{{ID: "x", CPU: 100}, {ID: "y", CPU: 100}},
		Preferences: []placement.Preference{
			{Name: "data", About: "its data is on b", Components: []string{"x"}, Points: []float64{0, 50, 10}},
			{Name: "users", About: "its users are near c", Components: []string{"x"}, Points: []float64{0, 0, 20}},
		},
	}
	plan, err := placement.Place(p)
	require.NoError(t, err)
	require.True(t, plan.Exact)
	require.Equal(t, "b", plan.Assignments[0].Target.Node)
	require.InDelta(t, 50, plan.Assignments[0].Score.Preferred, 1e-9)
	require.Zero(t, plan.Assignments[1].Score.Preferred, "y has none")
	require.InDelta(t, plan.ScoreTotal, plan.Assignments[0].Score.Weighted+50+plan.Assignments[1].Score.Weighted, 1e-9)

	ex := placement.Explain(p, plan)
	require.Equal(t, map[string]string{"data": "its data is on b", "users": "its users are near c"}, ex.Components[0].Preferences)
	require.Nil(t, ex.Components[1].Preferences)
	require.InDelta(t, 20, ex.Components[0].Margin, 1e-9)
	best := ex.Components[0].Nodes[0]
	require.Equal(t, []placement.PreferenceTerm{{Name: "data", Points: 50}, {Name: "users", Points: 0}}, best.Preferred)
	require.InDelta(t, best.Score.Weighted+50, best.Total, 1e-9)

	p.Preferences[0].Components = []string{"z", "x", "x"}
	p.Preferences[1].Points = []float64{-1, 0}
	_, err = placement.Place(p)
	require.ErrorContains(t, err, "preferences[0].components[0]")
	require.ErrorContains(t, err, "preferences[0].components[2]")
	require.ErrorContains(t, err, "preferences[1].points")
}
