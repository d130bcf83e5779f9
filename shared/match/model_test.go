package match_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/topology"
)

// TestSolve_keepsWhatAModelSaysOfSpreadsAndChannels: what no descriptor can say, another dialect may.
func TestSolve_keepsWhatAModelSaysOfSpreadsAndChannels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	two := taxonomy(node{name: "n1", cores: 4}, node{name: "n2", cores: 4})
	far := two.Cluster["edge"]
	far.Name, far.Node = "far", map[string]topology.Node{}
	n3 := two.Cluster["edge"].Node["n1"]
	n3.Name, n3.ScaScore = "n3", topology.Known(99.0) // else the best
	far.Node["n3"] = n3
	two.Cluster["far"] = far
	w.picture(two)

	app := &appmodel.Application{
		Dialect: appmodel.CODECO, Name: "watch",
		Components: []appmodel.Component{
			{Name: "camera", Type: appmodel.TypeKubernetes, Targets: []appmodel.Target{{Cluster: "edge", Node: "n1"}}},
			{Name: "detector", Type: appmodel.TypeKubernetes},
		},
		Channels: []appmodel.Channel{{
			Name: "video", From: "camera", To: appmodel.Peer{Component: "detector"}, MaxLatency: 10 * time.Millisecond,
		}},
		Spreads: []appmodel.Spread{{Components: []string{"camera", "detector"}, By: "node", Max: 1}},
	}
	answer, err := match.Solve(t.Context(), w.DB, match.Request{Parsed: app}, settings)
	require.NoError(t, err)
	require.Equal(t, placement.Target{Orchestrator: "ocm", Cluster: "edge", Node: "n2"}, answer.Plan.Assignments[1].Target,
		"not beside the camera, and not where nothing says how long the way is")
}
