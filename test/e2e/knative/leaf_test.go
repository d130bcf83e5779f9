package knative_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/test/deployed"
)

// leaf is where infra/agents/leaf/leaf.yaml puts the leaf exporters.
const leaf = "littoral-agents"

// TestTheTaxonomyComesFromTheLeaf: the leaf exporter runs on the nodes of cluster1 as a DaemonSet and is all that tells of
// them. What runs there is known by it, and goes to edge1 when it falls silent.
func TestTheTaxonomyComesFromTheLeaf(t *testing.T) {
	c := newContinuum(t, "edge1")
	start := time.Now()
	c.startLeaf(t)
	c.knownByTheLeaf(c.kubectl("get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"))
	t.Logf("known after %s, the image's build included", time.Since(start).Round(time.Second))

	for _, node := range []string{"edge1/edge1-a", "edge1/edge1-b"} {
		require.NoError(t, c.fleet.Drain(node))
	}
	c.seen()
	var g api.Application
	require.Equal(t, http.StatusCreated, c.ask(auth.Operator, http.MethodPost, "/jobmanager/groups", c.descriptor("leaf"), &g,
		"Idempotency-Key", uuid.NewString()))
	c.id, c.namespace = g.ID, g.Namespace
	t.Cleanup(func() { c.remove(g.ID) })
	require.Equal(t, "lab", c.runsAt("cluster1").Targets.Node)

	require.NoError(t, c.fleet.Restore("edge1/edge1-a"))
	c.seen()
	start = time.Now()
	took := func(what string) { t.Logf("%s %s after the leaf ended", what, time.Since(start).Round(time.Second)) }
	c.stopLeaf()
	c.eventually("it is to run in edge1", func() bool {
		c.nudge("aggregator-tick")
		c.nudge("jobmanager-displace")
		return c.component().Targets.Cluster == "edge1"
	})
	took("placed elsewhere")
	c.runsAt("edge1")
	took("available elsewhere")
	c.gone("cluster1") // whose agent of Open Cluster Management was there all the time
}

// knownByTheLeaf waits until the taxonomy has the node lab as the leaf exporter tells of it, which calls cluster1 by that id.
func (c *continuum) knownByTheLeaf(id string) {
	c.t.Helper()
	cores, err := strconv.ParseFloat(c.kubectl("get", "node", "lab", "-o", "jsonpath={.status.capacity.cpu}"), 64)
	require.NoError(c.t, err)
	machine := c.kubectl("get", "node", "lab", "-o", "jsonpath={.status.nodeInfo.machineID}")
	require.Eventually(c.t, func() bool {
		c.nudge("aggregator-tick")
		clusters := c.clusters()
		for _, other := range clusters { // of which another test told is forgotten first
			if other.Name == "cluster1" && other.UUID != id {
				return false
			}
		}
		for _, node := range clusters[id].Node { // which has its name once the machine of another test is silent
			if clusters[id].Name == "cluster1" && node.Name == "lab" && node.UUID == machine && node.StaticMetrics.CPUCores == cores {
				return true
			}
		}
		return false
	}, 2*patience, pause, "the taxonomy has the node lab with its %g cores", cores)
}

// startLeaf runs the leaf exporter on each node of cluster1, with more arguments, which tells cluster1's Prometheus, until the
// test ends.
func (c *continuum) startLeaf(t *testing.T, arguments ...string) {
	t.Helper()
	image, err := deployed.Image(t.Context(), "infra/agents/leaf")
	require.NoError(t, err)
	manifest, err := os.ReadFile("../../../infra/agents/leaf/leaf.yaml")
	require.NoError(t, err)
	to := c.setting("PROMETHEUS_ADDRESS") + "/api/v1/otlp/v1/metrics"
	const last = "--docker=off"
	require.Contains(t, string(manifest), last+"]")
	ours := strings.NewReplacer(
		last, strings.Join(append([]string{last}, arguments...), ", "),
		"ko://github.com/littoral-project/littoral/infra/agents/leaf", image,
		"{name: LEAF_AGENT_ID, value: agent}", "{name: LEAF_AGENT_ID, value: agent-cluster1}",
		"{name: LEAF_ORCHESTRATOR, value: kubernetes}",
		"{name: LEAF_ORCHESTRATOR, value: ocm}\n            - {name: LEAF_CLUSTER_NAME, value: cluster1}\n"+
			"            - {name: LEAF_OTLP, value: \""+to+"\"}",
	).Replace(string(manifest))
	file := filepath.Join(t.TempDir(), "leaf.yaml")
	require.NoError(t, os.WriteFile(file, []byte(ours), 0o600))
	t.Cleanup(func() { c.kubectl("delete", "--ignore-not-found", "-n", leaf, "-f", file) })
	c.kubectl("apply", "-n", leaf, "-f", file)
	c.kubectl("rollout", "status", "-n", leaf, "daemonset/leaf", "--timeout=180s")
}

func (c *continuum) stopLeaf() {
	c.t.Helper()
	c.kubectl("delete", "-n", leaf, "daemonset/leaf")
	c.kubectl("wait", "-n", leaf, "--for=delete", "pod", "-l", "app=leaf", "--timeout=120s")
}

// seenCluster is what a test reads of a cluster in the taxonomy.
type seenCluster struct {
	UUID string `json:"uuid"`
	Name string `json:"name"`
	Node map[string]struct {
		UUID          string `json:"uuid"`
		Name          string `json:"name"`
		StaticMetrics struct {
			CPUCores float64 `json:"cpuCores"`
		} `json:"staticMetrics"`
	} `json:"node"`
}

// clusters are those of the taxonomy by their ids, none when it cannot be had.
func (c *continuum) clusters() map[string]seenCluster {
	a, err := c.try(auth.Viewer, http.MethodGet, "/aggregator/", "")
	if err != nil || a.status != http.StatusOK {
		return nil
	}
	var taxonomy struct {
		Cluster map[string]seenCluster `json:"cluster"`
	}
	require.NoError(c.t, json.Unmarshal(a.body, &taxonomy))
	by := map[string]seenCluster{}
	for _, cluster := range taxonomy.Cluster {
		by[cluster.UUID] = cluster
	}
	return by
}
