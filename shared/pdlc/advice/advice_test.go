package advice_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/pdlc/advice"
	"github.com/littoral-project/littoral/shared/pdlc/balance"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const shop = `name: shop
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 1, memory: 1Gi}
    manifests: [{name: web, manifest: {apiVersion: v1, kind: Pod, metadata: {name: web}}}]
`

func TestRecommend(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	recommend := func(id uuid.UUID) (list []advice.Recommendation, err error) {
		return list, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			list, err = advice.Recommend(ctx, tx, id)
			return err
		})
	}
	_, err := recommend(uuid.New())
	require.Equal(t, problem.NotFound, problem.KindOf(err))
	id := applicationtest.Submit(t, db, shop).ID
	_, err = recommend(id)
	require.Equal(t, problem.Unavailable, problem.KindOf(err), "no node is known")
	for name, cpu := range map[string]float64{"busy": 80, "idle": 10, "full": 99} {
		_, err := db.Exec(t.Context(), `insert into topology_nodes (cluster_key, node_key, cluster, node, digest, written_at, engine, architecture, cores, memory, cpu_percent, memory_percent, told, body)
			values ('edge', $1, 'edge', $1, 0, now(), 'Kubernetes', 'amd64', 8, 8589934592, $2, $2, '{}', '{}')`, name, cpu)
		require.NoError(t, err)
	}
	list, err := recommend(id)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "greedy", list[0].Agent)
	require.Equal(t, map[string]float64{"edge/idle": 1}, list[0].Nodes, "it evens the load out, and fits nowhere else as well")

	agents, err := advice.Train(t.Context(), db, balance.Options{Seed: 1, Episodes: 16})
	require.NoError(t, err)
	require.Len(t, agents, 3)
	chosen := 0
	for _, a := range agents {
		if a.Chosen {
			chosen++
		}
		require.Len(t, a.Results, 5, "greedy, three agents and the optimum")
	}
	require.LessOrEqual(t, chosen, 1)
	_, err = recommend(id)
	require.NoError(t, err)
	_, err = advice.Train(t.Context(), db, balance.Options{Episodes: 1})
	require.Equal(t, problem.Invalid, problem.KindOf(err))
}
