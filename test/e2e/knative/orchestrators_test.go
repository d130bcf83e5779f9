package knative_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/fleet"
	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/test/deployed"
)

// Names of the two clusters of an Open Cluster Management hub: cluster1, which is the hub itself with the node lab, and
// edge1 with the nodes edge1-a and edge1-b.
const (
	envEdge       = "LITTORAL_E2E_EDGE"            // a program: cut edge1, heal edge1, node-down NODE, node-up NODE
	envEdgeConfig = "LITTORAL_E2E_EDGE_KUBECONFIG" // of edge1
	envImage      = "LITTORAL_E2E_IMAGE"           // of a server that both clusters can pull; empty: built with ko
)

// continuum is the two clusters and an application that runs on them. Their agents, and cluster1's pods, are real; the
// test writes the telemetry of their nodes, in the form of the leaf exporters.
type continuum struct {
	*world

	fleet     *fleet.Fleet
	id        string
	namespace string
	image     string
}

// newContinuum begins to write the telemetry of both clusters, or of those that are named.
func newContinuum(t *testing.T, clusters ...string) *continuum {
	plan, err := fleet.Load("testdata/ocm.json")
	require.NoError(t, err)
	plan.Clusters = slices.DeleteFunc(plan.Clusters, func(p *fleet.Cluster) bool {
		return len(clusters) > 0 && !slices.Contains(clusters, p.Name)
	})
	return newContinuumOf(t, plan, nil)
}

// newContinuumOf begins to write the telemetry of the plan, as told makes it, which may be nil.
func newContinuumOf(t *testing.T, plan *fleet.Plan, told func([]prometheus.Sample) []prometheus.Sample) *continuum {
	w := newWorld(t)
	for _, name := range []string{envEdge, envEdgeConfig} {
		if os.Getenv(name) == "" {
			t.Skipf("%s is not set: needs a hub of Open Cluster Management with a second cluster", name)
		}
	}
	if w.setting("OCM_HUB") == "" {
		t.Skip("OCM_HUB is not set in the ConfigMap littoral")
	}
	c := &continuum{world: w, image: os.Getenv(envImage)}
	if c.image == "" {
		built, err := deployed.Image(t.Context(), "test/bench/hello")
		require.NoError(t, err)
		c.image = built
	}
	c.fleet = w.startTelemetry(t, plan, told)
	w.eventually("the aggregator sees the clusters", func() bool {
		w.nudge("aggregator-tick")
		a, err := w.try(auth.Viewer, http.MethodGet, "/aggregator/", "")
		return err == nil && a.status == http.StatusOK && bytes.Contains(a.body, []byte("edge1-b"))
	})
	return c
}

// startTelemetry writes the telemetry of nodes until the test ends, without any agent of the clusters they are in: as it is, or as
// told makes it.
func (w *world) startTelemetry(t *testing.T, plan *fleet.Plan, told func([]prometheus.Sample) []prometheus.Sample) *fleet.Fleet {
	t.Helper()
	f, err := fleet.New(fleet.Options{
		Plan: plan, File: filepath.Join(t.TempDir(), "fleet.json"),
		Append: func(ctx context.Context, samples []prometheus.Sample) error {
			if told != nil {
				samples = told(samples)
			}
			return w.RemoteWrite(ctx, samples)
		},
		Every: 5 * time.Second, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = f.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return f
}

// descriptor is an application with one server.
func (c *continuum) descriptor(note string) string {
	return fmt.Sprintf(`name: e2e-ocm
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 50m, memory: 32Mi}
    policies:
      - {redeployOnLostTelemetry: 30s}
      - {name: trust, fromTemplate: app-sca-score, variables: {threshold: 1}, remediation: reallocate}
    targets: # and not where other tests simulate clusters
      - {cluster_name: cluster1, orchestrator: ocm}
      - {cluster_name: edge1, orchestrator: ocm}
    manifests:
      - name: web
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: web}
          spec:
            replicas: 1
            selector: {matchLabels: {app: web}}
            template:
              metadata: {labels: {app: web}, annotations: {note: %s}}
              spec:
                terminationGracePeriodSeconds: 1
                containers: [{name: web, image: "%s", resources: {requests: {cpu: 5m, memory: 16Mi}}}]
`, note, c.image)
}

// seen makes the functions read the telemetry now.
func (c *continuum) seen() {
	c.t.Helper()
	require.NoError(c.t, c.fleet.Emit(c.t.Context()))
	c.tick("aggregator-tick")
	c.tick("jobmanager-displace")
}

// only makes the nodes of all other clusters unschedulable.
func (c *continuum) only(cluster string) {
	c.t.Helper()
	for _, node := range []string{"cluster1/lab", "edge1/edge1-a", "edge1/edge1-b"} {
		set := c.fleet.Drain
		if strings.HasPrefix(node, cluster) {
			set = c.fleet.Restore
		}
		require.NoError(c.t, set(node))
	}
	c.seen()
}

func (c *continuum) group() api.Application {
	c.t.Helper()
	var g api.Application
	require.Equal(c.t, http.StatusOK, c.ask(auth.Viewer, http.MethodGet, "/jobmanager/groups/"+c.id, "", &g))
	return g
}

// component returns the application's only component.
func (c *continuum) component() api.Job {
	c.t.Helper()
	g := c.group()
	return g.Components()[0]
}

// runsAt waits until the application is available in the cluster, and checks that the database never has it in another
// one.
func (c *continuum) runsAt(cluster string) api.Job {
	c.t.Helper()
	var j api.Job
	c.eventually("it is available in "+cluster, func() bool {
		g, available := c.group(), 0
		for i := range g.Jobs {
			for _, condition := range g.Jobs[i].Resource.Conditions {
				if condition.Type == "Available" && condition.Status == "True" {
					available++
				}
			}
		}
		require.LessOrEqual(c.t, available, 1, "two copies are available in the books")
		j = g.Components()[0]
		return g.Status == api.StatusAvailable && j.Targets.Cluster == cluster
	})
	return j
}

// in queries a cluster's own API.
func (c *continuum) in(cluster string, args ...string) (string, error) {
	if cluster == "edge1" {
		args = append([]string{"--kubeconfig", os.Getenv(envEdgeConfig)}, args...)
	}
	out, err := exec.Command("kubectl", append(args, "-n", c.namespace)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// replicas returns how many pods of the server are available in the cluster, "" if the object does not exist.
func (c *continuum) replicas(cluster string) string {
	out, err := c.in(cluster, "get", "deployment", "web", "-o", "jsonpath={.status.availableReplicas}")
	if err != nil {
		return ""
	}
	return out
}

func (c *continuum) gone(cluster string) {
	c.t.Helper()
	c.eventually("nothing is left in "+cluster, func() bool {
		out, err := c.in(cluster, "get", "deployment,pods", "--ignore-not-found", "-o", "name")
		return err == nil && out == ""
	})
}

func (c *continuum) edge(args ...string) {
	c.t.Helper()
	out, err := exec.Command(os.Getenv(envEdge), args...).CombinedOutput() // the tester's own
	require.NoError(c.t, err, "%s", out)
}

// violate reports a violated policy with a remediation.
func (c *continuum) violate(remediation string) {
	c.t.Helper()
	body := fmt.Sprintf(
		`{"id": %q, "policyName": "e2e", "remediation": %q, "subject": {"appInstance": %q, "appComponent": "web"}}`,
		uuid.NewString(),
		remediation,
		c.id,
	)
	require.Equal(
		c.t,
		http.StatusOK,
		c.ask(auth.Operator, http.MethodPost, "/jobmanager/policies/incompliance", body, nil),
	)
}

// alert tells the policy manager, like an Alertmanager, that the policy "trust" is violated. Once the application has
// another target cluster, perhaps after the policy's cool-down, it reports the alert as resolved.
func (c *continuum) alert(to string) {
	c.t.Helper()
	p := c.policy(c.id, "trust")
	start := time.Now().UTC().Format(time.RFC3339Nano)
	for _, status := range []string{"firing", "resolved"} {
		body := fmt.Sprintf(`{"version": "4", "alerts": [{"status": %q, "startsAt": %q, "endsAt": %q,
			"labels": {"alertname": %q, "icos_app_name": "e2e-ocm", "icos_app_instance": %q, "icos_app_component": "web"},
			"annotations": {"plm_id": %q, "plm_expr_value": "0"}}]}`,
			status, start, time.Now().UTC().Format(time.RFC3339Nano), p.Name+":rule-0", c.id, p.ID)
		require.Equal(c.t, http.StatusOK,
			c.ask(auth.Alertmanager, http.MethodPost, "/polman/watcher/api/v1/webhooks/alertmanager", body, nil))
		c.eventually("it is noted", func() bool {
			return (c.policy(c.id, "trust").Status.Phase == registry.Violated) == (status == "firing")
		})
		c.eventually("it is to run in "+to, func() bool {
			if c.component().Targets.Cluster == to {
				return true
			}
			c.nudge("policymanager-reconcile") // which executes the actions that were held back
			return false
		})
	}
}

// TestOpenClusterManagement is the life of an application under two real agents: it runs, is scaled, changed, stopped,
// started, and moved there and back; its cluster is cut off, and one of its nodes is lost; in the end it is deleted.
func TestOpenClusterManagement(t *testing.T) {
	c := newContinuum(t)
	step := func(name string, do func(t *testing.T)) {
		if !t.Failed() {
			start := time.Now()
			t.Run(name, func(t *testing.T) {
				c.world.t = t
				do(t)
			})
			t.Logf("%s: %s", name, time.Since(start).Round(time.Second))
			c.world.t = t
		}
	}
	t.Cleanup(func() {
		c.world.t = t
		c.edge("heal", "edge1")
		c.edge("node-up", "edge1-a")
		if c.id != "" {
			c.remove(c.id)
		}
	})
	step("it runs in real pods", func(t *testing.T) {
		c.only("cluster1")
		var g api.Application
		require.Equal(
			t,
			http.StatusCreated,
			c.ask(auth.Operator, http.MethodPost, "/jobmanager/groups", c.descriptor("one"), &g,
				"Idempotency-Key", uuid.NewString()),
		)
		c.id, c.namespace = g.ID, g.Namespace
		c.runsAt("cluster1")
		require.Equal(t, "1", c.replicas("cluster1"))
		out, err := c.in("cluster1", "get", "pods", "-l", "app.icos.eu/instance="+c.id, "-o",
			"jsonpath={.items[0].spec.nodeName} {.items[0].status.phase}")
		require.NoError(t, err, out)
		require.Equal(t, "lab Running", out)
	})
	step("it is scaled", func(*testing.T) {
		c.violate("scale-up")
		c.eventually("two run", func() bool { return c.replicas("cluster1") == "2" })
		c.runsAt("cluster1")
	})
	step("it is changed", func(t *testing.T) {
		require.Equal(
			t,
			http.StatusOK,
			c.ask(auth.Operator, http.MethodPut, "/jobmanager/groups/"+c.id, c.descriptor("two"), nil),
		)
		c.eventually("the change is there", func() bool {
			out, err := c.in("cluster1", "get", "deployment", "web", "-o", "jsonpath={.spec.template.metadata.annotations.note}")
			return err == nil && out == "two"
		})
		c.runsAt("cluster1")
	})
	step("it is stopped and started", func(t *testing.T) {
		require.Equal(t, http.StatusOK, c.ask(auth.Operator, http.MethodPut, "/jobmanager/groups/stop/"+c.id, "", nil))
		c.gone("cluster1")
		c.eventually("it has stopped", func() bool { return c.group().Status == api.StatusStopped })
		require.Equal(t, http.StatusOK, c.ask(auth.Operator, http.MethodPut, "/jobmanager/groups/start/"+c.id, "", nil))
		c.runsAt("cluster1")
	})
	step("nothing is awake while it runs", func(t *testing.T) {
		awake := c.watch(5 * time.Minute)
		require.Less(t, awake, 0.5, "most of the time no function has a pod")
	})
	step("an alert moves it to edge1", func(*testing.T) {
		require.NoError(c.t, c.fleet.Restore("edge1/edge1-a"))
		c.seen()
		c.asleep()
		c.alert("edge1")
		c.runsAt("edge1")
		c.gone("cluster1")
	})
	step("and another one back", func(*testing.T) {
		c.asleep()
		c.alert("cluster1")
		c.runsAt("cluster1")
		c.gone("edge1")
	})
	step("its cluster is cut off", func(t *testing.T) {
		c.only("edge1")
		c.runsAt("edge1")
		require.NoError(t, c.fleet.Restore("cluster1/lab"))
		c.seen()
		c.edge("cut", "edge1")
		c.eventually("nobody knows how it is, and that is said", func() bool {
			c.nudge("deploymentmanager-sync-ocm")
			g := c.group()
			return g.Status == api.StatusUnknown && strings.Contains(g.Message, "edge1") &&
				slices.ContainsFunc(g.Conditions, func(c api.Condition) bool {
					return c.Type == "Available" && c.Status == "Unknown" && c.Reason == "ClusterLost"
				})
		})
		require.NoError(t, c.fleet.Cut("edge1"))
		c.eventually("its policy has it moved", func() bool {
			c.seen()
			return c.component().Targets.Cluster == "cluster1"
		})
		c.runsAt("cluster1")
		require.NotEmpty(t, c.replicas("edge1"), "nobody could remove the old copy yet")
		c.edge("heal", "edge1")
		require.NoError(t, c.fleet.Heal("edge1"))
		c.gone("edge1")
		c.eventually("the books are closed on it", func() bool { return len(c.group().Jobs) == 1 })
		c.runsAt("cluster1")
	})
	step("its node is drained, and opened again", func(t *testing.T) {
		order := func(node, how string) {
			require.Equal(t, http.StatusOK, c.ask(auth.Operator, http.MethodPut, "/matchmaker/nodes/"+node+"/"+how, "", nil))
		}
		c.seen() // the last look was while edge1 was cut off
		order("edge1/edge1-b", "cordon")
		order("cluster1/lab", "drain")
		require.Equal(t, "edge1-a", c.runsAt("edge1").Targets.Node)
		c.gone("cluster1")
		var closed []api.Cordon
		require.Equal(t, http.StatusOK, c.ask(auth.Viewer, http.MethodGet, "/matchmaker/nodes", "", &closed))
		require.Len(t, closed, 2)
		for _, node := range closed {
			require.Empty(t, node.Components, "nothing is left on %s", node.Node)
			order(node.Cluster+"/"+node.Node, "uncordon")
		}
		c.seen()
		require.Equal(t, "edge1-a", c.runsAt("edge1").Targets.Node, "what has left does not come back by itself")
	})
	step("its node is lost", func(t *testing.T) {
		require.NoError(t, c.fleet.Drain("edge1/edge1-b"))
		require.NoError(t, c.fleet.Restore("edge1/edge1-a"))
		require.NoError(t, c.fleet.Drain("cluster1/lab"))
		c.seen()
		require.Equal(t, "edge1-a", c.runsAt("edge1").Targets.Node)
		require.NoError(t, c.fleet.Restore("edge1/edge1-b"))
		c.seen()
		c.edge("node-down", "edge1-a")
		require.NoError(t, c.fleet.Set("edge1-a", map[string]string{"telemetry": "none"}))
		c.eventually("it has left its node", func() bool {
			c.seen()
			return c.component().Targets.Node == "edge1-b"
		})
		c.runsAt("edge1")
		c.edge("node-up", "edge1-a")
	})
	step("it is deleted", func(*testing.T) {
		c.remove(c.id)
		c.gone("cluster1")
		c.gone("edge1")
		out, err := exec.Command("kubectl", "get", "manifestworks", "-A", "-l", "app.kubernetes.io/managed-by=littoral", "-o", "name").
			CombinedOutput()
		require.NoError(c.t, err)
		require.Empty(c.t, strings.TrimSpace(string(out)))
	})
}
