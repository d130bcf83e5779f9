package host

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/knative"
	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/triggers"
)

// childHome, if set, makes this test binary a host with that home that serves until it is killed.
const childHome = "HOST_TEST_CHILD_HOME"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childHome); dir != "" {
		h, err := Start(context.Background(), options(dir))
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(h.URL())
		select {}
	}
	storetest.Main(m)
}

func options(dir string) Options {
	return Options{
		Addr: "127.0.0.1:0", Home: dir, Registry: functions.Registry,
		Files:  map[string]fs.FS{"/knative": knative.Files, "/triggers": triggers.Files},
		Log:    slog.New(slog.DiscardHandler),
		tracer: storetest.Tracer(),
	}
}

// newHome is a directory that a Postgres under another account can reach, which t.TempDir is not.
func newHome(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "littoral-host-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func start(t *testing.T, o Options) *Host {
	t.Helper()
	h, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { stop(t, h) })
	return h
}

func stop(t *testing.T, h *Host) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	require.NoError(t, h.Stop(ctx))
}

// ask sends a request with the token of the role, none for "", and decodes a JSON answer into into unless it is nil.
func ask(t *testing.T, base, home, role, method, path, body string, into any) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
	require.NoError(t, err)
	if role != "" {
		token, err := api.TokenFile(filepath.Join(home, "token-"+role))()
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if into != nil {
		require.NoError(t, json.Unmarshal(text, into), "%s", text)
	}
	return resp.StatusCode
}

func example(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../test/examples/hello.yaml")
	require.NoError(t, err)
	return string(text)
}

// group is the fields of an application that these tests read.
type group struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// patience covers a fleet's own delays on a busy machine.
const patience = 60 * time.Second

func available(t *testing.T, base, home, id string) {
	t.Helper()
	var g group
	require.Eventually(t, func() bool {
		return ask(t, base, home, "viewer", "GET", "/jobmanager/groups/"+id, "", &g) == 200 && g.Status == "Available"
	}, patience, 50*time.Millisecond)
}

func TestADescriptorGoesInAndItsComponentsRun(t *testing.T) {
	t.Parallel()
	o := options(newHome(t))
	o.Database = storetest.URL(t)
	h := start(t, o)
	var g group
	require.Equal(t, http.StatusCreated, ask(t, h.URL(), o.Home, "operator", "POST", "/jobmanager/groups", example(t), &g))
	available(t, h.URL(), o.Home, g.ID)

	var up struct{ Data struct{ Result []any } }
	require.Equal(t, 200, ask(t, h.URL(), o.Home, "viewer", "GET", "/prometheus/api/v1/query?query=up", "", &up))
	require.NotEmpty(t, up.Data.Result)
	var stats map[string]struct{ Delivered int }
	require.Equal(t, 200, ask(t, h.URL(), o.Home, "viewer", "GET", "/broker/stats", "", &stats))
	require.Equal(t, 1, stats["littoral/matchmaker-place"].Delivered)
	var letters []any
	require.Equal(t, 200, ask(t, h.URL(), o.Home, "viewer", "GET", "/broker/dead-letters", "", &letters))
	require.Empty(t, letters)
}

func TestEveryOwnRouteAsksForItsRole(t *testing.T) {
	t.Parallel()
	o := options(newHome(t))
	o.Database = storetest.URL(t)
	h := start(t, o)
	for _, role := range []string{"admin", "operator", "viewer", "agent", "alertmanager"} {
		info, err := os.Stat(h.TokenFile(role))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	}
	for _, row := range []struct {
		role, method, path string
		status             int
	}{
		{"", "GET", "/", 200},
		{"", "GET", "/healthz", 200},
		{"", "GET", "/oidc/.well-known/openid-configuration", 200},
		{"", "GET", "/elsewhere", 404},
		{"", "GET", "/prometheus/api/v1/query?query=up", 401},
		{"", "GET", "/broker/stats", 401},
		{"", "GET", "/broker/dead-letters", 401},
		{"", "POST", "/broker/littoral/default", 401},
		{"operator", "POST", "/broker/littoral/default", 403},
		{"admin", "POST", "/broker/littoral/default", 400},
		{"", "GET", "/fleet", 401},
		{"viewer", "GET", "/fleet", 200},
		{"", "GET", "/fleet/metrics", 401},
		{"alertmanager", "GET", "/fleet/metrics", 403},
		{"viewer", "GET", "/fleet/metrics", 200},
		{"viewer", "POST", "/prometheus/-/reload", 404},
		{"viewer", "POST", "/fleet/drain", 403},
		{"viewer", "DELETE", "/healthz", 405},
		{"", "GET", "/jobmanager/groups", 401},
	} {
		got := ask(t, h.URL(), o.Home, row.role, row.method, row.path, "", nil)
		require.Equal(t, row.status, got, "%s %s as %q", row.method, row.path, row.role)
	}
}

func TestAPrivateServiceIsNotOnTheBaseURL(t *testing.T) {
	t.Parallel()
	o := options(newHome(t))
	o.Database, o.Fleet = storetest.URL(t), FleetNone
	event := `{"specversion":"1.0","id":"1","source":"/x","type":"dev.knative.sources.ping"}`
	h := start(t, o)
	require.Equal(t, http.StatusMethodNotAllowed, ask(t, h.URL(), o.Home, "admin", "POST", "/", event, nil))
}

// TestKill9 submits an application and kills the host at once: the next one with the same home must bring it to run.
func TestKill9(t *testing.T) {
	t.Parallel()
	home := newHome(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childHome+"="+home)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	base := strings.TrimSpace(line)
	require.Contains(t, base, "http://", line)
	var g group
	require.Equal(t, http.StatusCreated, ask(t, base, home, "operator", "POST", "/jobmanager/groups", example(t), &g))
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()

	h := start(t, options(home))
	available(t, h.URL(), home, g.ID)

	h.postgres.server.Kill() // if only Postgres dies, that is just a pause
	require.Eventually(t, func() bool { return ask(t, h.URL(), home, "", "GET", "/healthz", "", nil) == 200 },
		patience, 20*time.Millisecond)
	require.Equal(t, 200, ask(t, h.URL(), home, "viewer", "GET", "/jobmanager/groups/"+g.ID, "", &g))
}

func TestStart_saysWhatIsWrongAndLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	database := storetest.URL(t)
	kustomization := "resources: [x.yaml]\nnamespace: littoral\n"
	overlay := func(yaml string) fs.FS {
		return fstest.MapFS{
			"overlays/laptop/kustomization.yaml": {Data: []byte(kustomization)},
			"overlays/laptop/x.yaml":             {Data: []byte(yaml)},
		}
	}
	const service = `
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: %s}
spec: {template: {spec: {containers: [{image: %q}]}}}
---
`
	const brokerYAML = "apiVersion: eventing.knative.dev/v1\nkind: Broker\nmetadata: {name: default}\n"
	nothing := function.NewEntry("twin", function.Spec{Routes: []function.Route{{Pattern: "GET /same", Role: auth.Open}}}, func(*function.Env) (quiet, error) {
		return quiet{}, nil
	})
	for name, row := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"a port in use": {func(o *Options) { o.Addr = taken.Addr().String() }, "choose another address: --addr"},
		"an image that is not ours": {
			func(o *Options) { o.Files["/knative"] = overlay(fmt.Sprintf(service, "x", "docker.io/library/x")) },
			"runs ko:// images only",
		},
		"a function that is not there": {
			func(o *Options) { o.Files["/knative"] = overlay(fmt.Sprintf(service, "x", "ko://example.org/x")) },
			"holds no function example.org/x",
		},
		"no Broker": {
			func(o *Options) {
				o.Files["/knative"] = overlay("apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n")
			},
			"one Broker is needed",
		},
		"an unknown field": {
			func(o *Options) { o.Files["/knative"] = overlay(brokerYAML + "sepc: {}\n") },
			`unknown field "sepc"`,
		},
		"two functions on one route": {
			func(o *Options) {
				o.Files["/knative"] = overlay(fmt.Sprintf(service, "x", "ko://x") + fmt.Sprintf(service, "y", "ko://y") + brokerYAML)
				o.Registry = map[string]function.Entry{"x": nothing, "y": nothing}
			},
			`route "GET /same"`,
		},
		"a fleet that is not there":   {func(o *Options) { o.Fleet = "/nowhere.json" }, "/nowhere.json"},
		"a fleet that cannot be made": {func(o *Options) { o.Fleet = "generated:nodes=none" }, "nodes=none"},
		"a home that is a file":       {func(o *Options) { o.Home = "host_test.go" }, "home"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(newHome(t))
			o.Database = database
			row.change(&o)
			_, err := Start(t.Context(), o)
			require.ErrorContains(t, err, row.want)
			if h, err := openHome(o.Home); err == nil {
				require.NoError(t, h.close(), "the home is free again")
			} else {
				require.NotContains(t, err.Error(), "another littoral-up")
			}
		})
	}
}

type quiet struct{}

func (quiet) Handle(http.ResponseWriter, *http.Request) error { return nil }

func TestTwoHostsNeverShareAHome(t *testing.T) {
	t.Parallel()
	dir := newHome(t)
	first, err := openHome(dir)
	require.NoError(t, err)
	_, err = openHome(dir)
	require.ErrorContains(t, err, fmt.Sprintf("another littoral-up (pid %d) uses %s", os.Getpid(), dir))
	require.NoError(t, first.close())
	second, err := openHome(dir)
	require.NoError(t, err)
	require.NoError(t, second.close())
}

func TestSettingsAreTheUsersThenTheServicesThenTheHosts(t *testing.T) {
	t.Parallel()
	user := settings.Map(map[string]string{"ALL": "of the user", "JOBMANAGER_X_ONE": "of the user"})
	found := settingsOf([]service{{
		entry: function.Entry{Name: "jobmanager-x"},
		env:   map[string]string{"ONE": "1", "TWO": "2", "ALL": "3"},
	}}, user, map[string]string{"JOBMANAGER_X_TWO": "of the host", "THREE": "of the host"})
	require.Equal(t, "of the user", found.Get("JOBMANAGER_X_ONE"))
	require.Equal(t, "2", found.Get("JOBMANAGER_X_TWO"))
	require.Equal(t, "of the host", found.Get("THREE"))
	_, set := found("JOBMANAGER_X_ALL")
	require.False(t, set, "what the user set for all functions holds for this one")
}

// TestTwoHostsInOneProcessHaveTheirOwnSettings: each archives into its own home, and uses its own Prometheus.
func TestTwoHostsInOneProcessHaveTheirOwnSettings(t *testing.T) {
	t.Parallel()
	type found struct {
		Objects    string `envconfig:"OBJECTS_URL"`
		Rules      string `envconfig:"RULES_API_URL"`
		StaleAfter string `envconfig:"STALE_AFTER"`
	}
	made := map[string]found{}
	hosts := map[string]*Host{}
	for _, name := range []string{"one", "two"} {
		o := options(newHome(t))
		o.Database, o.Fleet = storetest.URL(t), FleetNone
		o.Settings = settings.Map(map[string]string{"STALE_AFTER": name})
		o.Registry = map[string]function.Entry{"x": function.NewEntry(
			"test-x", function.Spec{Routes: []function.Route{{Pattern: "GET /x", Role: auth.Open}}},
			func(env *function.Env) (quiet, error) {
				var f found
				err := env.Config(&f)
				made[name] = f
				return quiet{}, err
			},
		)}
		o.Files = map[string]fs.FS{"/knative": fstest.MapFS{
			"overlays/laptop/kustomization.yaml": {Data: []byte("resources: [x.yaml]\nnamespace: littoral\n")},
			"overlays/laptop/x.yaml": {Data: []byte("apiVersion: eventing.knative.dev/v1\nkind: Broker\nmetadata: {name: default}\n---\n" +
				"apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: test-x}\n" +
				"spec: {template: {spec: {containers: [{image: \"ko://x\"}]}}}\n")},
		}}
		hosts[name] = start(t, o)
	}
	for name, h := range hosts {
		require.Equal(t, found{"file://" + h.objectsDir(), h.URL() + "/rules/", name}, made[name])
		require.Equal(t, http.StatusOK, ask(t, h.URL(), h.home.dir, "", http.MethodGet, "/x", "", nil))
	}
}

func TestSecretsOutliveTheHost(t *testing.T) {
	t.Parallel()
	h, err := openHome(newHome(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, h.close()) }()
	first, err := h.secret("event-key")
	require.NoError(t, err)
	require.Len(t, first, 64)
	again, err := h.secret("event-key")
	require.NoError(t, err)
	require.Equal(t, first, again)
	info, err := os.Stat(filepath.Join(h.dir, "event-key"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
}
