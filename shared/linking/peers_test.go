package linking_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/clusterlink"
	"github.com/littoral-project/littoral/shared/linking"
	"github.com/littoral-project/littoral/shared/topology"
)

func TestPeersAreWhatTelemetrySays(t *testing.T) {
	t.Parallel()
	at := time.Now()
	inv := &topology.Inventory{At: at}
	for _, c := range []struct {
		name, kind string
		peer       bool
		silent     time.Duration
	}{{"away", "ocm", true, time.Hour}, {"edge", "ocm", true, 0}, {"home", "nuvla", true, 0}, {"plain", "kubernetes", false, 0}} {
		inv.Places = append(inv.Places, topology.Place{
			Cluster: c.name, Node: "n", In: &topology.Cluster{Type: c.kind, ClusterLink: c.peer},
			At: &topology.Node{LastSeen: topology.Known(float64(at.Add(-c.silent).Unix()))},
		})
	}
	reachable := func(s clusterlink.Settings) (names []string) {
		for _, p := range linking.Peers(s, inv, time.Minute) {
			require.Equal(t, p.Reachable, p.Reason == "", p.Cluster)
			if p.Reachable {
				names = append(names, p.Name)
			}
		}
		return names
	}
	require.Equal(t, []string{"agent-edge"}, reachable(clusterlink.Settings{
		Kind: clusterlink.ClusterLink, Peers: map[string]string{"edge": "agent-edge"},
	}))
	require.Equal(t, []string{"edge", "plain"}, reachable(clusterlink.Settings{Kind: clusterlink.MCS}))
	require.Empty(t, reachable(clusterlink.Settings{Kind: clusterlink.None}))
}
