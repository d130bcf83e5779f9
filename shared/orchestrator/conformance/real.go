package conformance

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/littoral-project/littoral/shared/job"
)

// What names real clusters to run the suite against as well.
const (
	EnvHub      = "LITTORAL_TEST_KUBECONFIG" // of a hub of Open Cluster Management
	EnvClusters = "LITTORAL_TEST_CLUSTERS"   // NAME=KUBECONFIG,... of clusters under it; the first has two nodes or more
	EnvImage    = "LITTORAL_TEST_IMAGE"      // what the clusters can pull; any will do where pods are simulated
	EnvCut      = "LITTORAL_TEST_CUT"        // a program that takes "cut NAME" and "heal NAME"; none = nothing is cut
)

// Real returns the clusters that the environment names, in their order, as a world without an orchestrator. It skips
// the test, with the reason, when there are none.
func Real(t *testing.T, orchestrator string) (w *Clusters, kubeconfigs map[string]string) {
	t.Helper()
	if os.Getenv(EnvClusters) == "" {
		t.Skipf("%s names no real cluster; the double was tested", EnvClusters)
	}
	if image := os.Getenv(EnvImage); image != "" {
		Image = image
	}
	w = &Clusters{Objects: map[string]dynamic.Interface{}, Wait: patience}
	kubeconfigs = map[string]string{}
	nodes := schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	for _, entry := range strings.Split(os.Getenv(EnvClusters), ",") {
		name, path, ok := strings.Cut(entry, "=")
		require.True(t, ok, "%s: %q is not NAME=KUBECONFIG", EnvClusters, entry)
		config, err := clientcmd.BuildConfigFromFlags("", path)
		require.NoError(t, err)
		client, err := dynamic.NewForConfig(config)
		require.NoError(t, err)
		kubeconfigs[name], w.Objects[name] = path, client
		list, err := client.Resource(nodes).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		var names []string
		for _, n := range list.Items {
			names = append(names, n.GetName())
		}
		slices.Sort(names)
		for _, n := range names {
			w.Targets = append(w.Targets, job.Target{Orchestrator: orchestrator, Cluster: name, Node: n})
		}
	}
	w.Parted = func(t *testing.T, cluster string, cut bool) {
		t.Helper()
		verb := "heal"
		if cut {
			verb = "cut"
		}
		out, err := exec.CommandContext(t.Context(), os.Getenv(EnvCut), verb, cluster).
			CombinedOutput()
			// the tester's own
		require.NoError(t, err, "%s", out)
	}
	return w, kubeconfigs
}
