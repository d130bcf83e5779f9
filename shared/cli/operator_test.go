package cli_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/topology"
)

// edit is an editor that replaces text, given as OLD=NEW.
func edit(change string) func(context.Context, string) error {
	return func(_ context.Context, file string) error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		was, is, _ := strings.Cut(change, "=")
		return os.WriteFile(file, []byte(strings.ReplaceAll(string(text), was, is)), 0o600)
	}
}

// narrow fails for a line that a terminal of 80 columns breaks.
func narrow(t *testing.T, r result) {
	t.Helper()
	for line := range strings.SplitSeq(r.out, "\n") {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 80, "%q", line)
	}
}

// tour runs commands and compares all that they print with the golden file.
func tour(t *testing.T, h *host, name string, lines ...string) {
	t.Helper()
	var tr transcript
	for _, line := range lines {
		args := strings.Fields(line)
		r := h.run(args...)
		if !strings.HasPrefix(line, "plan") && !strings.Contains(line, "-o ") { // reasons and documents may be long
			narrow(t, r)
		}
		tr.add(r, args...)
	}
	golden(t, name, took.ReplaceAllString(hideTraces(tr.String()), "about 1.0 s"))
}

// took is a duration that a run measured.
var took = regexp.MustCompile(`about \d+\.\d s`)

func TestRevisions(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	tour(
		t, h, "revisions.golden",
		"diff -f testdata/shop.yaml",
		"diff -f testdata/shop-green.yaml",
		"diff -f testdata/huge.yaml",
		"diff -f testdata/broken.yaml",
		"plan -f testdata/shop-green.yaml",
		"apply -f testdata/shop-green.yaml",
		"history shop",
		"history shop --revision 1",
		"history shop --revision 2",
		"history shop --revision 1 --against 2",
		"get app shop -o descriptor",
		"rollback shop",
		"rollback shop --to 1",
		"rollback shop --to 7",
		"get app shop -o descriptor --revision 1",
		"get app shop",
		"get apps -o descriptor",
		"history shop",
	)
	require.Zero(t, h.run("diff", "-f", "testdata/shop.yaml").code)
	var list []api.Revision
	require.NoError(t, json.Unmarshal([]byte(h.ok("history", "shop", "-o", "json")), &list))
	require.Len(t, list, 3)
	require.EqualValues(t, 1, list[0].Restores)
}

// TestWhatIsNotAvailableInTimeIsRolledBack to the descriptor that was, where that was available.
func TestWhatIsNotAvailableInTimeIsRolledBack(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	r := h.run("apply", "-f", "testdata/shop.yaml", "--auto-rollback", "--timeout", "300ms")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "there is no descriptor to go back to", "it is new")
	r = h.run("apply", "-f", "testdata/shop-green.yaml", "--auto-rollback", "--timeout", "300ms")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "so it was not rolled back", "the former was not available either")

	var working atomic.Bool // the agents do, when the command line looks
	h.onPath = func(r *http.Request) int {
		if strings.Contains(r.URL.Path, "/rollback/") {
			working.Store(true)
		} else if working.Load() && r.URL.Path == "/jobmanager/history" {
			h.work()
		}
		return 0
	}
	working.Store(true)
	if r := h.run("wait", "app", "shop", "--timeout", "5s"); r.code != 0 {
		t.Fatal(h.ok("get", "jobs"), h.ok("describe", "shop"))
	}
	working.Store(false)
	r = h.run("apply", "-f", "testdata/shop.yaml", "--auto-rollback", "--timeout", "10s")
	require.Equal(t, 1, r.code, "it failed all the same")
	require.Contains(t, r.out, "rolled back to revision 2")
	if r := h.run("wait", "app", "shop", "--timeout", "5s"); r.code != 0 {
		t.Fatal(h.ok("get", "jobs", "-o", "yaml"), h.ok("describe", "shop"), h.ok("events", "--app", "shop"))
	}
	require.Equal(t, h.ok("get", "app", "shop", "-o", "descriptor", "--revision", "2"), h.ok("get", "app", "shop", "-o", "descriptor"))
}

func TestEdit(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	env := map[string]string{"LITTORAL_SERVER": h.url, "LITTORAL_TOKEN": h.sys.Token(auth.Operator), "EDIT": "green=green"}
	require.Contains(t, run(t.Context(), nil, env, "", "edit", "shop").out, "application shop unchanged")
	env["EDIT"] = "name: shop=name: other"
	r := run(t.Context(), nil, env, "", "edit", "shop")
	require.Equal(t, 1, r.code)
	_, kept, found := strings.Cut(r.err, "littoral apply -f ")
	require.True(t, found, r.err)
	file := strings.Fields(kept)[0]
	require.FileExists(t, file, "what was typed is not lost")
	require.NoError(t, os.Remove(file))
	env["EDIT"] = "colour: blue=colour: red"
	require.Contains(t, run(t.Context(), nil, env, "", "edit", "shop").out, "application shop updated (revision 2)")
	require.Contains(t, h.ok("get", "app", "shop", "-o", "descriptor"), "colour: red")
}

// web is an application with something to scale.
const web = `name: web
components:
  - name: front
    type: kubernetes
    requirements: {cpu: 100m, memory: 64Mi}
    scaling: {minReplicas: 1, maxReplicas: 4}
    manifests:
      - name: front
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: front}
          spec:
            replicas: 1
            selector: {matchLabels: {app: front}}
            template: {metadata: {labels: {app: front}}, spec: {containers: [{name: front, image: "nginx:1"}]}}
`

func TestScaleAndPin(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	file := filepath.Join(t.TempDir(), "web.yaml")
	require.NoError(t, os.WriteFile(file, []byte(web), 0o600))
	h.ok("apply", "-f", file)
	h.ok("apply", "-f", "testdata/shop.yaml")
	tour(
		t, h, "scale.golden",
		"scale web front 3",
		"scale web front 3",
		"scale web front 9",
		"scale web back 2",
		"scale shop web 2",
		"pin front hub-1",
		"pin web/front hub/hub-1",
		"pin front nowhere",
		"pin nothing hub-1",
		"history web",
		"history web --revision 2",
		"history web --revision 3",
		"pin front --free",
		"rollback web --to 1",
		"history web",
	)
}

func TestNodes(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.drain("")
	h.at(2, func() { require.Equal(t, 2, h.work()) })
	h.ok("apply", "-f", "testdata/shop.yaml", "--wait")
	tour(
		t, h, "nodes.golden",
		"whatif drain edge-1",
		"whatif drain edge-9",
		"whatif cut edge",
		"whatif cut nowhere",
		"whatif set edge-1 sca=10 cpu=90",
		"whatif set edge-1 colour=1",
		"whatif apply -f testdata/shop-green.yaml",
		"whatif apply -f testdata/huge.yaml",
		"cordon edge-1",
		"cordon edge-9",
		"uncordon edge-1",
		"uncordon edge-1",
		"drain edge-1 --deadline 5m",
		"get jobs -o wide",
		"uncordon edge-1",
		"drain edge-1 --monitor --timeout 0s",
	)
	require.Empty(t, h.sys.Broker.Failures())
}

// TestTreeHasPods that telemetry knows, at the places of their components.
func TestTreeHasPods(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.at(2, func() { require.Equal(t, 2, h.work()) })
	h.ok("apply", "-f", "testdata/shop.yaml", "--wait")
	var apps []api.Application
	require.NoError(t, json.Unmarshal([]byte(h.ok("get", "apps", "-o", "json")), &apps))
	h.pods = func(seen *topology.Taxonomy) {
		for _, c := range seen.Cluster {
			for name, n := range c.Node {
				n.Pod = map[string]topology.Pod{"uid": {
					Name: "shop-1__web-" + name, Status: "Running",
					Container: map[string]topology.Container{"web": {CPUUsage: topology.Known(0.25), ContainerMemory: topology.Known(64 << 20)}},
					Workload:  map[string]topology.Workload{"w": {AppInstance: apps[0].ID, AppComponent: "web"}},
				}}
				c.Node[name] = n
			}
		}
	}
	tree := h.ok("tree", "shop")
	require.Equal(t, 1, strings.Count(tree, "      pod web-"), tree)
	require.Contains(t, tree, ": Running, 0.25 cores, 64Mi")
}

func TestPoliciesAndTree(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.at(2, func() { require.Equal(t, 2, h.work()) })
	h.ok("apply", "-f", "testdata/shop.yaml", "--wait")
	var list []api.Policy
	require.NoError(t, json.Unmarshal([]byte(h.ok("get", "policies", "-o", "json")), &list))
	require.NotEmpty(t, list)
	tour(
		t, h, "policies.golden",
		"get policies",
		"get policies --app shop --phase violated",
		"violations",
		"tree shop",
		"policy deactivate "+list[0].Name,
		"policy activate "+list[0].Name,
		"policy set "+list[0].Name+" threshold=0.8",
		"policy activate nothing",
		"tree nothing",
	)
}
