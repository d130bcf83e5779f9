package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/logs/files"
	"github.com/littoral-project/littoral/test/kubeapi"
)

// logged is a host whose functions read logs, with an application, and a way to say something as one of its pods.
func logged(t *testing.T) (h *host, id string, say func(component, pod, node, line string)) {
	t.Helper()
	dir := t.TempDir()
	h = newHostWith(t, map[string]string{"LOGS_BACKEND": "files", "LOGS_DIR": dir})
	h.ok("apply", "-f", "testdata/shop.yaml")
	var apps []api.Application
	require.NoError(t, json.Unmarshal([]byte(h.ok("get", "apps", "-o", "json")), &apps))
	store := files.New(files.Options{Dir: dir})
	return h, apps[0].ID, func(component, pod, node, line string) {
		require.NoError(t, store.Write(context.WithoutCancel(t.Context()), []logs.Entry{{
			At: time.Now(), Application: apps[0].ID, Component: component, Cluster: "hub", Node: node, Pod: pod,
			Container: component, Stream: "stdout", Line: line,
		}}))
	}
}

var clockOnly = regexp.MustCompile(`\b\d\d:\d\d:\d\d(\.\d{3})?\b`)

func TestLogs(t *testing.T) {
	t.Parallel()
	h, id, say := logged(t)
	say("web", "web-1", "hub-1", "listening on :8080")
	say("web", "web-10", "hub-2", "GET /\t200")
	say("db", "db-1", "hub-1", "it was \x1b[31mred\x1b[0m \u202ebackwards")
	h.sys.Agent("ocm", "agent-hub").Work()
	say("web", "web-1", "hub-1", strings.Repeat("long ", 30))
	var tr transcript
	for _, line := range []string{
		"logs shop", "logs shop web --tail 2", "logs shop db -t", "logs shop --text GET", "logs shop nothing", "logs elsewhere",
		"logs shop --since soon", "logs shop web --tail 1 -o json",
	} {
		args := strings.Fields(line)
		tr.add(h.run(args...), args...)
	}
	text := regexp.MustCompile(`"at":"[^"]*"`).ReplaceAllString(tr.String(), `"at":"2026-01-01T12:00:00Z"`)
	golden(t, "logs.golden", clockOnly.ReplaceAllString(hideTraces(text), "12:00:00"))
	require.Equal(t, 1, h.as(t.Context(), auth.Viewer, "logs", id).code, "they are for who handed it in")
}

func TestLogsAreFollowedOverStreams(t *testing.T) {
	t.Parallel()
	h, _, say := logged(t)
	for n := range 3 {
		say("web", "web-1", "hub-1", fmt.Sprintf("before %d", n))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &watched{want: map[string]func(){
		"before 2": func() { say("web", "web-2", "hub-2", "after") },
		"after":    stop,
	}}
	r := h.watch(ctx, out, "logs", "-f", "shop", "web")
	require.Zero(t, r, out.String())
	for _, line := range []string{"before 0", "before 1", "before 2", "after"} {
		require.Equal(t, 1, strings.Count(out.String(), "| "+line), out.String())
	}
	require.Contains(t, out.String(), " web: on edge/")
}

// TestLogsWithoutALogStore are read from the clusters whose kubeconfigs the server has, and followed there; where it has neither, it is
// said so.
func TestLogsWithoutALogStore(t *testing.T) {
	t.Parallel()
	cluster := kubeapi.Start(t, nil, []string{"edge-1"})
	h := newHostWith(t, map[string]string{
		"DEPLOYMENTMANAGER_POD_LOGS_KUBECONFIG_DIR": filepath.Dir(cluster.KubeconfigFile(t, "edge")),
	})
	h.ok("apply", "-f", "testdata/shop.yaml")
	for h.work() > 0 {
		continue
	}
	var apps []api.Application
	require.NoError(t, json.Unmarshal([]byte(h.ok("get", "apps", "-o", "json")), &apps))
	pod := "/api/v1/namespaces/" + apps[0].Namespace + "/pods/web-1"
	cluster.Put(t, pod, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1", "namespace": %q, "labels":
{"app.icos.eu/instance": %q, "app.icos.eu/component": "web"}}, "spec": {"nodeName": "edge-1", "containers": [{"name": "web"}]},
"status": {"phase": "Running"}}`, apps[0].Namespace, apps[0].ID))
	cluster.Write(pod, "web", "before", time.Now())
	r := h.run("logs", "shop")
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.out, "web-1 | before")
	require.Contains(t, r.err, "no log store")

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &watched{want: map[string]func(){
		"| before": func() { cluster.Write(pod, "web", "after", time.Now()) },
		"| after":  stop,
	}}
	require.Zero(t, h.watch(ctx, out, "logs", "-f", "shop", "web"), out.String())
	require.Equal(t, 1, strings.Count(out.String(), "| before"), out.String())

	bare := newHost(t)
	bare.ok("apply", "-f", "testdata/shop.yaml")
	r = bare.run("logs", "shop")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "LOGS_BACKEND")
	require.Contains(t, r.err, "KUBECONFIG_DIR")
}
