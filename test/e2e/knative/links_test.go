package knative_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
)

// talking is an application of a client in cluster1 and its server in the cluster.
func (c *continuum) talking(server string) string {
	component := func(name, cluster, communication string) string {
		return fmt.Sprintf(`  - name: %[1]s
    type: kubernetes
    requirements: {cpu: 50m, memory: 32Mi}
    communication: [%[3]s]
    targets: [{cluster_name: %[2]s, orchestrator: ocm}]
    manifests:
      - name: %[1]s
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: %[1]s}
          spec:
            replicas: 1
            selector: {matchLabels: {app: %[1]s}}
            template:
              metadata: {labels: {app: %[1]s}}
              spec:
                terminationGracePeriodSeconds: 1
                containers: [{name: web, image: "%[4]s", resources: {requests: {cpu: 5m, memory: 16Mi}}}]
`, name, cluster, communication, c.image)
	}
	return "name: e2e-links\ncomponents:\n" + component("hello", "cluster1", "{incoming: world-svc}") +
		component("world", server, "{outgoing: world-svc}") + `      - name: world-svc
        manifest: {apiVersion: v1, kind: Service, metadata: {name: world-svc}, spec: {selector: {app: world}, ports: [{port: 8080}]}}
`
}

// TestLinksBetweenClusters: a client in one cluster and its server in another get objects of ClusterLink through both real
// agents; the client is available only once the peers find them valid; what is no longer used goes. ClusterLink itself
// does not run: the test says what a peer would.
func TestLinksBetweenClusters(t *testing.T) {
	c := newContinuum(t)
	if c.setting("LINKS") != "clusterlink" {
		t.Skip("LINKS is not clusterlink in the ConfigMap littoral")
	}
	kinds := []string{"exports", "imports", "accesspolicies"}
	c.namespace = "default"
	for _, cluster := range []string{"cluster1", "edge1"} {
		for _, kind := range kinds {
			if out, err := c.in(cluster, "get", "crd", kind+".clusterlink.net"); err != nil {
				t.Skipf("%s has no definitions of ClusterLink: %s", cluster, out)
			}
		}
	}
	objects := func(cluster string) string {
		out, err := c.in(cluster, "get", strings.Join(kinds, ","), "--ignore-not-found", "-o",
			`jsonpath={range .items[*]}{.kind}/{.metadata.name} {end}`)
		require.NoError(t, err, out)
		return out
	}
	sides := func() []api.LinkSide {
		var all []api.LinkSide
		require.Equal(t, http.StatusOK, c.ask(auth.Viewer, http.MethodGet, "/clusterlink/links?application="+c.id, "", &all))
		return all
	}

	var g api.Application
	start := time.Now()
	require.Equal(t, http.StatusCreated,
		c.ask(auth.Operator, http.MethodPost, "/jobmanager/groups", c.talking("edge1"), &g, "Idempotency-Key", uuid.NewString()))
	c.id, c.namespace = g.ID, g.Namespace
	t.Cleanup(func() { c.remove(c.id) })
	c.eventually("both ends have their objects", func() bool {
		server, client := objects("edge1"), objects("cluster1")
		return strings.Contains(server, "Export/world-svc") && strings.Contains(server, "AccessPolicy/") &&
			strings.Contains(client, "Import/world-svc") && strings.Contains(client, "AccessPolicy/")
	})
	t.Logf("objects in both clusters %s after the application was handed in", time.Since(start).Round(time.Second/10))
	out, err := c.in("cluster1", "get", "import", "world-svc", "-o", "jsonpath={.spec.sources[*].peer}/{.spec.sources[*].exportName}")
	require.NoError(t, err, out)
	require.Equal(t, "edge1/world-svc", out)
	c.eventually("the server runs, and the client waits for its link", func() bool {
		g := c.group()
		return slices.ContainsFunc(g.Jobs, func(j api.Job) bool { return j.Component() == "world" && j.Available() }) &&
			!slices.ContainsFunc(g.Jobs, func(j api.Job) bool { return j.Component() == "hello" && j.Available() })
	})

	said := time.Now()
	c.findLinksValid()
	c.eventually("the client is available", func() bool { return c.group().Status == api.StatusAvailable })
	t.Logf("available %s after the peers found the link valid", time.Since(said).Round(time.Second/10))
	c.eventually("both sides are ready", func() bool {
		all := sides()
		return len(all) == 2 && !slices.ContainsFunc(all, func(s api.LinkSide) bool { return s.State != "Ready" })
	})

	require.Equal(t, http.StatusOK, c.ask(auth.Operator, http.MethodPut, "/jobmanager/groups/"+c.id, c.talking("cluster1"), nil))
	c.eventually("in one cluster they need no link", func() bool {
		return c.group().Status == api.StatusAvailable && objects("edge1")+objects("cluster1") == "" && len(sides()) == 0
	})
	c.remove(c.id)
	c.gone("cluster1")
	c.gone("edge1")
	left, err := exec.Command("kubectl", "get", "manifestworks", "-A", "-l", "app.kubernetes.io/managed-by=littoral", "-o", "name").
		CombinedOutput()
	require.NoError(t, err)
	require.Empty(t, strings.TrimSpace(string(left)))
}

var begun = time.Now()

// findLinksValid says of the application's links what their peers would, were there any. Said again, it changes nothing.
func (c *continuum) findLinksValid() {
	c.t.Helper()
	found := map[string][]string{"exports": {"ExportValid"}, "imports": {"ImportTargetPortValid", "ImportServiceValid"}}
	for kind, conditions := range found {
		for _, cluster := range []string{"cluster1", "edge1"} {
			names, err := c.in(cluster, "get", kind, "--ignore-not-found", "-o", "name")
			require.NoError(c.t, err, names)
			for _, name := range strings.Fields(names) {
				var all []string
				for _, condition := range conditions {
					all = append(all, fmt.Sprintf(`{"type": %q, "status": "True", "reason": "Seen", "message": "", "lastTransitionTime": %q}`,
						condition, begun.UTC().Format(time.RFC3339)))
				}
				out, err := c.in(cluster, "patch", name, "--subresource=status", "--type=merge",
					"-p", `{"status": {"conditions": [`+strings.Join(all, ",")+`]}}`)
				require.NoError(c.t, err, out)
			}
		}
	}
}
