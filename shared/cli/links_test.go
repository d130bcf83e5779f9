package cli_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
)

// TestTheTreeShowsLinks: each end of a link says where the other is, and how the link is.
func TestTheTreeShowsLinks(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.at(2, func() { require.Equal(t, 2, h.work()) })
	h.ok("apply", "-f", "testdata/shop.yaml", "--wait")
	var apps []api.Application
	require.NoError(t, json.Unmarshal([]byte(h.ok("get", "apps", "-o", "json")), &apps))
	at := apps[0].Jobs[0].Targets.Cluster
	link, err := json.Marshal([]map[string]any{{
		"service": "frames", "port": 80, "cluster": "far", "clients": []string{"web"},
		"servers": []map[string]string{{"component": "camera", "cluster": at}},
	}})
	require.NoError(t, err)
	for _, side := range [][2]string{{at, "Ready"}, {"far", "Silent"}} {
		_, err = h.sys.DB.Exec(t.Context(), `insert into link_sides (application, orchestrator, cluster, copy, name, namespace, epoch, contents, links, state)
values ($1, 'ocm', $2, gen_random_uuid(), 'shop', 'shop', 1, '[]', $3, $4)`, apps[0].ID, side[0], string(link), side[1])
		require.NoError(t, err)
	}
	require.Contains(t, h.ok("tree", "shop"), "link from web in far to frames: Silent in far\n")
}
