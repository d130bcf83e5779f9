package host

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/topology"
)

// TestTheLeafTellsOfThisMachine: the real one, built and run by the host, whose taxonomy then has this machine beside the fleet, closed.
func TestTheLeafTellsOfThisMachine(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "leaf")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../agents/leaf")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	o := options(newHome(t))
	o.Leaf = program
	h := start(t, o)
	name, err := os.Hostname()
	require.NoError(t, err)
	ask := func() *topology.Node {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL()+"/aggregator/", nil)
		require.NoError(t, err)
		token, err := os.ReadFile(h.TokenFile("viewer"))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		var taxonomy topology.Taxonomy
		if json.NewDecoder(resp.Body).Decode(&taxonomy) != nil || len(taxonomy.Cluster) < 2 {
			return nil
		}
		for _, n := range taxonomy.Cluster[leafAgent].Node {
			return &n
		}
		return nil
	}
	require.Eventually(t, func() bool { return ask() != nil }, time.Minute, 200*time.Millisecond, "this machine is in the taxonomy")
	n := ask()
	require.Equal(t, name, n.Name)
	require.False(t, n.CanSchedule(), "no agent takes work for it")
	cores, _ := n.StaticMetrics.CPUCores.Get()
	require.GreaterOrEqual(t, cores, 1.0)
	heard := func() bool { // by the rules about what is lost or late
		q := h.URL() + "/prometheus/api/v1/query?query=" + url.QueryEscape("littoral_telemetry_lost_samples == 0 and on (icos_host_id) littoral_telemetry_age_seconds < 60")
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, q, nil)
		require.NoError(t, err)
		token, err := os.ReadFile(h.TokenFile("viewer"))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		var answer struct{ Data struct{ Result []any } }
		return json.NewDecoder(resp.Body).Decode(&answer) == nil && len(answer.Data.Result) == 1
	}
	require.Eventually(t, heard, 2*time.Minute, 200*time.Millisecond, "nothing of the leaf is lost")

	o = options(newHome(t))
	o.Leaf = filepath.Join(t.TempDir(), "none")
	_, err = Start(t.Context(), o)
	require.ErrorContains(t, err, "leaf")
}
