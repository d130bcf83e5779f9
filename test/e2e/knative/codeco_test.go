package knative_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
)

// codecoNodes are the ends of the network: one node of cluster1, and two of edge1.
var codecoNodes = []string{"lab", "edge1-a", "edge1-b"}

// codecoTopology connects the nodes by a switch; links have 100 Mbit/s, but for one that has as much as is said.
func codecoTopology(worse, bandwidth string) string {
	var b strings.Builder
	b.WriteString(`apiVersion: qos-scheduler.siemens.com/v1alpha1
kind: NetworkTopology
metadata: {name: e2e-site, namespace: e2e-codeco}
spec:
  networkImplementation: E2E-SITE
  nodes:
    - {name: e2e-switch, type: NETWORK}
`)
	for _, node := range codecoNodes {
		fmt.Fprintf(&b, "    - {name: %s}\n", node)
	}
	b.WriteString("  links:\n")
	link := func(source, target string) {
		name, has := source+"--"+target, "100M"
		if name == worse {
			has = bandwidth
		}
		fmt.Fprintf(&b, "    - {name: %s, source: %s, target: %s, capabilities: {bandWidthBits: %s, latencyNanos: \"1e6\"}}\n",
			name, source, target, has)
	}
	for _, node := range codecoNodes {
		link(node, "e2e-switch")
		link("e2e-switch", node)
	}
	return b.String()
}

// codecoApp has three services of which no node has room for two, and two channels between them.
func codecoApp(image string) string {
	service := func(name, channel string) string {
		return fmt.Sprintf(`    - serviceName: %s
      podspec:
        terminationGracePeriodSeconds: 1
        containers: [{name: c, image: "%s", resources: {requests: {cpu: 20m, memory: 4Gi}}}]
%s`, name, image, channel)
	}
	channel := func(name, to string, port int, bandwidth string) string {
		return fmt.Sprintf(`      serviceChannels:
        - channelName: %s
          otherService: {serviceName: %s, appName: e2e-camera, port: %d}
          advancedChannelSettings: {minBandwidth: %s, maxDelay: 50e-3}
`, name, to, port, bandwidth)
	}
	return `apiVersion: codeco.he-codeco.eu/v1alpha1
kind: CodecoApp
metadata: {name: e2e-camera, namespace: e2e-codeco}
spec:
  appName: e2e-camera
  qosClass: Gold
  securityClass: None
  codecoapp-msspec:
` + service("eye", channel("frames", "detector", 9000, "20M")) +
		service("detector", channel("finds", "store", 9001, "1M")) + service("store", "")
}

// TestACodecoApp: a CodecoApp by kubectl, with a network that its channels need; a link that loses bandwidth has it planned
// anew, once; with the object all of it goes. It needs "make install-codeco".
func TestACodecoApp(t *testing.T) {
	c := newContinuum(t)
	if w, err := c.Kubectl("get", "apiserversource", "acm-app-apply"); err != nil {
		t.Skipf("CODECO is not installed (make install-codeco): %s", w)
	}
	kubectl := c.kubectlIn("e2e-codeco")
	exec.Command("kubectl", "create", "namespace", "e2e-codeco").Run() //nolint:errcheck // it may be there
	app := codecoApp(c.image)
	t.Cleanup(func() {
		kubectl(app, "delete", "--ignore-not-found", "--timeout=5m", "-f", "-")
		kubectl(codecoTopology("", ""), "delete", "--ignore-not-found", "-f", "-")
		kubectl("", "delete", "namespace", "e2e-codeco", "--wait=false")
	})
	type channel struct {
		Metadata struct{ Name string }
		Spec     struct{ ChannelFrom, ChannelTo, SourceWorkload string }
		Status   struct{ Status, Reason string }
	}
	channels := func() []channel {
		var list struct{ Items []channel }
		require.NoError(t, json.Unmarshal([]byte(kubectl("", "get", "channels.qos-scheduler.siemens.com", "-o", "json")), &list))
		return list.Items
	}
	running := func() bool {
		all := channels()
		return len(all) == 2 && !slices.ContainsFunc(all, func(c channel) bool { return c.Status.Status != "RUNNING" })
	}
	hash := func() string {
		return kubectl("", "get", "assignmentplan", "e2e-camera-assignment-plan", "-o", "jsonpath={.status.solveHash}")
	}
	frames := func() channel {
		for _, c := range channels() {
			if strings.HasSuffix(c.Spec.SourceWorkload, "eye") {
				return c
			}
		}
		require.Fail(t, "no channel begins at eye")
		return channel{}
	}

	start := time.Now()
	kubectl(codecoTopology("", ""), "apply", "-f", "-")
	kubectl(app, "apply", "-f", "-")
	linked := c.setting("LINKS") == "clusterlink" // then a service waits for what it talks to in another cluster
	c.eventually("both channels run", func() bool {
		if !c.found("e2e-camera") { // the watch begins again with each new namespace; the clock comes every five minutes
			c.nudge("acm-app-apply")
			return false
		}
		if linked {
			c.findLinksValid()
		}
		return running() || c.nudge("swm-report") && running() // the clock of states, which comes every five minutes
	})
	t.Logf("channels run %s after kubectl apply", time.Since(start).Round(time.Second/10))
	c.eventually("the object says so", func() bool {
		return kubectl("", "get", "codecoapp", "e2e-camera", "-o", "jsonpath={.status.status}") == "OK"
	})
	places := map[string]bool{}
	for _, c := range channels() {
		places[c.Spec.ChannelFrom], places[c.Spec.ChannelTo] = true, true
	}
	require.Len(t, places, 3, "no node has room for two")
	t.Logf("%s", kubectl("", "get", "codecoapp,assignmentplan,channels.qos-scheduler.siemens.com", "-o", "wide"))

	before, worse := hash(), "e2e-switch--"+frames().Spec.ChannelTo
	start = time.Now()
	kubectl(codecoTopology(worse, "5M"), "apply", "-f", "-")
	c.eventually("it is planned anew", func() bool {
		if linked {
			c.findLinksValid()
		}
		c.nudge("swm-report")
		now := hash()
		return now != "" && now != before && running()
	})
	t.Logf("planned anew and running %s after %s had lost bandwidth", time.Since(start).Round(time.Second/10), worse)
	require.NotEqual(t, worse, "e2e-switch--"+frames().Spec.ChannelTo)
	after := hash()
	for range 2 { // the pause after which it would be planned anew a second time
		c.nudge("swm-replan")
		c.asleep()
		require.Equal(t, after, hash(), "it was planned anew once")
	}

	kubectl(app, "delete", "--timeout=5m", "-f", "-")
	require.Empty(t, channels())
	for _, at := range [][]string{{}, {"--kubeconfig", os.Getenv(envEdgeConfig)}} {
		c.eventually("its pods are gone", func() bool {
			out, err := exec.Command("kubectl", append(at, "get", "pods", "-A", "-l", "app.icos.eu/name=e2e-camera", "-o", "name")...).Output()
			return err == nil && len(out) == 0
		})
	}
}

// found reports whether there is an application of the name, which the test is about from then on.
func (c *continuum) found(name string) bool {
	c.t.Helper()
	var all []api.Application
	require.Equal(c.t, http.StatusOK, c.ask(auth.Viewer, http.MethodGet, "/jobmanager/groups", "", &all))
	for i := range all {
		if all[i].Name == name {
			c.id, c.namespace = all[i].ID, all[i].Namespace
			return true
		}
	}
	return false
}
