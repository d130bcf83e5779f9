package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
)

// steps calls a function before the nth request of a path is answered, and counts the requests.
func (h *host) steps(path string, acts ...func()) {
	n := 0
	h.onPath = func(r *http.Request) int {
		if r.Method != http.MethodGet || r.URL.Path != path || n >= len(acts) {
			return 0
		}
		n++
		if act := acts[n-1]; act != nil {
			act()
		}
		return 0
	}
}

func TestWatchShowsChangesOnly(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var id string
	h.steps("/jobmanager/groups", nil, nil, func() { h.work() }, nil, func() {
		var apps []api.Application
		h.onPath = nil
		require.NoError(t, json.Unmarshal([]byte(h.ok("get", "apps", "-o", "json")), &apps))
		id = apps[0].ID
		h.ok("stop", "app", id)
		h.work()
		h.ok("delete", "app", id)
		h.steps("/jobmanager/groups", nil, stop)
	})
	r := h.as(ctx, auth.Operator, "get", "apps", "-w")
	require.Zero(t, r.code, r.err)
	require.Equal(t, []string{
		"NAME ID STATUS HEALTH READY AGE", "Deploying", "Available", "Gone",
	}, statuses(r.out), "%s", r.out)
}

// statuses keeps the header line, and the status of each further line.
func statuses(out string) []string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, line := range lines {
		words := strings.Fields(line)
		if lines[i] = words[2]; i == 0 {
			lines[i] = strings.Join(words, " ")
		}
	}
	return lines
}

// TestWatchOfAState: an application that leaves the state is shown with its new state, and only a deleted one is shown
// as gone.
func TestWatchOfAState(t *testing.T) {
	t.Parallel()
	for what, path := range map[string]string{"apps": "/jobmanager/groups", "jobs": "/jobmanager/jobs"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.ok("apply", "-f", "testdata/shop.yaml")
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			h.steps(path, nil, func() { require.Equal(t, 2, h.work()) }, nil, stop)
			r := h.as(ctx, auth.Operator, "get", what, "-w", "--state", map[string]string{"apps": "Deploying", "jobs": "Created"}[what])
			require.Zero(t, r.code, r.err)
			require.NotContains(t, r.out, "Gone")
			became := map[string]string{"apps": "Available", "jobs": "Finished"}[what]
			require.Contains(t, r.out, became)
		})
	}
}

func TestWatchOfAState_whatIsGone(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/huge.yaml") // it has no place, so it is gone at once
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	h.steps("/jobmanager/groups", nil, func() {
		h.onPath = nil
		h.ok("delete", "app", "huge")
		h.steps("/jobmanager/groups", nil, stop)
	})
	r := h.as(ctx, auth.Operator, "get", "apps", "-w", "--state", "Pending")
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.out, "Gone")
}

// TestWatchPassesOnAWarningOnce: and not at each poll.
func TestWatchPassesOnAWarningOnce(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"nodes", "clusters"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			h.steps("/aggregator/", nil, nil, nil, stop)
			r := h.as(ctx, auth.Operator, "get", what, "-w")
			require.Zero(t, r.code, r.err)
			require.Equal(t, "littoral: warning: the query for power failed\n", r.err)
		})
	}
}

func TestWatchForPrograms(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	h.steps("/jobmanager/jobs", nil, func() { h.work() }, nil, stop)
	r := h.as(ctx, auth.Operator, "get", "jobs", "-w", "-o", "json")
	require.Zero(t, r.code, r.err)
	var states []string
	lines := bufio.NewScanner(strings.NewReader(r.out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var j api.Job
		require.NoError(t, json.Unmarshal(lines.Bytes(), &j), "one line, one job")
		states = append(states, j.State)
	}
	require.Equal(t, []string{"Created", "Created", "Finished", "Finished"}, states)
}

func TestWatchOutlivesAServerThatIsAwayForAWhile(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	asked := 0
	h.onPath = func(r *http.Request) int {
		if r.URL.Path != "/jobmanager/groups" {
			return 0
		}
		switch asked++; {
		case asked > 1 && asked < 19: // longer than the client's timeout of three calls
			return http.StatusServiceUnavailable
		case asked == 19:
			h.work()
		case asked == 21:
			stop()
		}
		return 0
	}
	r := h.as(ctx, auth.Operator, "get", "apps", "-w")
	require.Zero(t, r.code, r.err)
	require.Equal(t, 1, strings.Count(r.err, "trying again"), "%s", r.err)
	require.Contains(t, r.out, "Available")
}

func TestEventsAreWatched(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	for _, format := range []string{"table", "json", "yaml"} {
		ctx, stop := context.WithCancel(t.Context())
		h.at(2, func() { h.ok("submit", "-f", "testdata/huge.yaml") })
		h.at(5, stop)
		r := h.as(ctx, auth.Operator, "events", "-w", "--tail", "2", "-o", format)
		stop()
		require.Zero(t, r.code, r.err)
		require.Contains(t, r.out, "application.unplaced")
		require.NotContains(t, r.out, "topology.changed", "older than the tail")
	}
}

func TestOutputsForPrograms(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	h.work()
	for line, into := range map[string]any{
		"get apps": &[]api.Application{},
		"get jobs": &[]api.Job{},
		"get nodes": &[]struct {
			Cluster, Name, Orchestrator, State string
			Node                               api.Node
		}{},
		"get clusters": &[]struct {
			Name, State  string
			Nodes, Ready int
			Cluster      api.Cluster
		}{},
		"describe app shop": &struct {
			Application api.Application
			History     []api.Entry
		}{},
		"explain -f testdata/shop.yaml": &api.Answer{},
		"explain app shop":              &api.Answer{},
		"plan -f testdata/shop.yaml":    &api.Preview{},
		"events":                        &[]api.Entry{},
		"fleet":                         &api.Fleet{},
		"fleet list":                    &api.Fleet{},
		"version":                       &struct{ Version, Go string }{},
	} {
		text := h.ok(append(strings.Fields(line), "-o", "json")...)
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		require.NoError(t, d.Decode(into), "%s: %s", line, text)
		require.NotEqual(t, "null\n", text)
		again, err := yaml.YAMLToJSON([]byte(h.ok(append(strings.Fields(line), "-o", "yaml")...)))
		require.NoError(t, err, line)
		require.JSONEq(t, text, string(again), line)
	}
	require.Equal(t, "[]\n", h.ok("get", "jobs", "-o", "json", "--owner", "nobody"), "an empty list is a list")
}

func TestFilters(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	h.ok("apply", "-f", "testdata/huge.yaml")
	var apps []api.Application
	require.NoError(t, json.Unmarshal([]byte(h.ok("get", "apps", "-o", "json")), &apps))
	shop := apps[0].ID
	for args, want := range map[string]int{
		"get apps --app shop":                              1,
		"get apps --app " + shop:                           1,
		"get apps --app " + shop[:6]:                       1,
		"get jobs --app " + strings.ToUpper(shop):          2,
		"get jobs --state Created":                         3,
		"get jobs --orchestrator nuvla":                    2,
		"get jobs --orchestrator ocm":                      0,
		"get apps --owner nobody":                          0,
		"get apps --owner " + apps[0].Owner:                2,
		"get apps --state Deploying":                       1,
		"get apps --state Pending":                         1,
		"get apps --state Available":                       0,
		"get apps --health Progressing":                    2,
		"get apps --health Healthy":                        0,
		"get jobs --owner agent-edge":                      0,
		"get nodes --orchestrator ocm":                     2,
		"get nodes --cluster edge":                         2,
		"get clusters --orchestrator nuvla --cluster edge": 1,
		"get clusters --orchestrator nuvla --cluster hub":  0,
	} {
		var list []json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(h.ok(append(strings.Fields(args), "-o", "json")...)), &list))
		require.Len(t, list, want, args)
	}
	require.Contains(t, h.ok("describe", "app", shop[:8]), "shop")
}

// TestAWatchAlignsItsFirstRows: the first of them is as wide as the widest.
func TestAWatchAlignsItsFirstRows(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/huge.yaml") // Pending is shorter than Deploying
	h.ok("apply", "-f", "testdata/shop.yaml")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	h.steps("/jobmanager/groups", nil, stop)
	r := h.as(ctx, auth.Operator, "get", "apps", "-w")
	require.Zero(t, r.code, r.err)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	require.Len(t, lines, 3)
	column := strings.Index(lines[0], "READY")
	for _, line := range lines[1:] {
		require.Regexp(t, `^\d/\d `, line[column:], r.out)
	}
}

func TestFleetCommandsAreSentAsTheHostReadsThem(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, line := range []string{
		"fleet drain edge-1", "fleet restore edge/edge-1",
		"fleet set edge-1 cpu=0.95 device:/dev/video0=busy label:a=b=c sca=",
		"fleet cut edge", "fleet heal edge",
	} {
		h.ok(strings.Fields(line)...)
	}
	require.Equal(t, []string{
		`drain {"node":"edge-1"}`, `restore {"node":"edge/edge-1"}`,
		`set {"node":"edge-1","set":{"cpu":"0.95","device:/dev/video0":"busy","label:a":"b=c","sca":""}}`,
		`cut {"cluster":"edge"}`, `heal {"cluster":"edge"}`,
	}, h.commands)
}

// TestANodeIsNamedByWhatItHas: whoever follows the tour need not know where the matchmaker has put things.
func TestANodeIsNamedByWhatItHas(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	refused := func(line, says string) {
		r := h.run(strings.Fields(line)...)
		require.Equal(t, 1, r.code, r.out)
		require.Contains(t, r.err, says)
	}
	refused("fleet drain app:camera", `no node has a component "camera"`)
	h.ok("apply", "-f", "testdata/shop.yaml")
	require.Contains(t, h.ok("fleet", "drain", "app:camera"), "node edge/edge-1 drained\nIt has shop/camera.")
	require.Contains(t, h.ok("fleet", "set", "app:shop/camera", "sca=3"), "node edge/edge-1 set: sca=3\n")
	require.Equal(t, []string{`drain {"node":"edge/edge-1"}`, `set {"node":"edge/edge-1","set":{"sca":"3"}}`}, h.commands)
	refused("fleet restore app:mall/camera", `no node has a component "mall/camera"`)
}

func TestARolloutIsMadeToFailWithoutNamingANode(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	require.Equal(t, "set: app:camera=crash app:web=ok\nThis is about shop/camera on edge/edge-1. See what becomes of it with: "+
		"littoral events -w\n", h.ok("fleet", "set", "app:camera=crash", "app:web=ok"))
	require.Contains(t, h.ok("fleet", "set", "app:shop/web=slow"), "Nothing of that name runs yet.")
	require.Equal(t, []string{
		`set {"set":{"app:camera":"crash","app:web":"ok"}}`, `set {"set":{"app:shop/web":"slow"}}`,
	}, h.commands)
	r := h.run("fleet", "set", "edge-1")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "KEY=VALUE")
}

func TestADescriptorFromStandardInput(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	env := map[string]string{"LITTORAL_SERVER": h.url, "LITTORAL_TOKEN": h.sys.Token(auth.Operator)}
	const document = `name: tiny
components:
  - name: a
    type: kubernetes
    manifests: [{name: a, manifest: {kind: ConfigMap, apiVersion: v1, metadata: {name: a}}}]
`
	r := run(t.Context(), time.Now, env, document, "apply", "-f", "-")
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.out, "application tiny created")
}
