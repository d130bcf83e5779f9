package match_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/clusterlink"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// talkers has hello, which only the cluster edge has the devices for, and world, which only the cluster far is large enough for.
const talkers = `
name: shop
components:
  - name: hello
    type: kubernetes
    communication: [{incoming: world-svc}]
    targets: [{cluster_name: edge}]
    manifests: [{name: hello, manifest: {apiVersion: v1, kind: Pod, metadata: {name: hello}}}]
  - name: world
    type: kubernetes
    communication: [{outgoing: world-svc}]
    requirements: {cpu: "8"}
    manifests:
      - {name: world, manifest: {apiVersion: v1, kind: Pod, metadata: {name: world}}}
      - {name: world-svc, manifest: {apiVersion: v1, kind: Service, metadata: {name: world-svc}, spec: {ports: [{port: 80}]}}}
`

// joined is two clusters, of which far is a peer of ClusterLink only if that is said.
func joined(far bool, silent time.Duration) *topology.Taxonomy {
	t := taxonomy(node{name: "e1", cores: 2})
	other := taxonomy(node{name: "f1", cores: 16, silent: silent}).Cluster["edge"]
	here := t.Cluster["edge"]
	here.ClusterLink = true
	other.Name, other.AgentID, other.ClusterLink = "far", "agent-far", far
	t.Cluster["edge"], t.Cluster["far"] = here, other
	return t
}

func TestComponentsThatTalkAreNotPutWhereNoLinkCanBe(t *testing.T) {
	t.Parallel()
	linked := settings
	linked.Links = clusterlink.Settings{Kind: clusterlink.ClusterLink}
	mcs := settings
	mcs.Links = clusterlink.Settings{Kind: clusterlink.MCS}
	free := strings.Replace(talkers, "{incoming: world-svc}", "{incoming: world-svc, optional: true}", 1)
	for name, c := range map[string]struct {
		app      string
		far      bool
		settings match.Settings
		placed   int
	}{
		"links are off":                      {talkers, false, settings, 2},
		"both are peers":                     {talkers, true, linked, 2},
		"one is no peer":                     {talkers, false, linked, 1},
		"the descriptor allows it":           {free, false, linked, 2},
		"any cluster of Kubernetes may, MCS": {talkers, false, mcs, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.picture(joined(c.far, 0))
			id := w.submit([]byte(c.app))
			w.placeBy(id, c.settings)
			placed := 0
			for _, at := range w.where(id) {
				if at != "" {
					placed++
				}
			}
			require.Equal(t, c.placed, placed)
			if c.placed == 2 {
				return
			}
			answer, err := match.Explain(t.Context(), w.DB, id, c.settings)
			require.NoError(t, err)
			said := ""
			for _, e := range answer.Explanation.Components {
				for _, n := range e.Nodes {
					for _, f := range n.Failures {
						if f.Rule == placement.RuleLink {
							said += f.Detail
						}
					}
				}
			}
			require.Contains(t, said, "far is no peer that can be reached")
		})
	}
}

func (w world) placeBy(id uuid.UUID, s match.Settings) {
	w.Helper()
	require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		return match.Place(ctx, tx, id, s, false, "the test wants it")
	}))
}
