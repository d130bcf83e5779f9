package fleet

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/problem"
)

// control serves the fleet's switches behind a real issuer.
func control(t *testing.T, f *Fleet) (h http.Handler, tokens map[string]string) {
	t.Helper()
	mux := http.NewServeMux()
	host := httptest.NewServer(mux)
	t.Cleanup(host.Close)
	i, err := issuer.New(issuer.Options{
		URL: host.URL + "/oidc", Dir: t.TempDir(), Audience: "littoral", Clients: issuer.People(),
	})
	require.NoError(t, err)
	mux.Handle("/oidc/", i.Handler())
	tokens = map[string]string{"": ""}
	for _, c := range issuer.People() {
		tokens[c.ID], _, err = i.Token(t.Context(), c.ID)
		require.NoError(t, err)
	}
	v := auth.NewVerifier(auth.Config{Issuer: host.URL + "/oidc", Audience: "littoral"}, host.Client(), nil)
	h, err = f.Handler(v, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return h, tokens
}

func send(t *testing.T, h http.Handler, method, path, token, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestControl(t *testing.T) {
	t.Parallel()
	f := newFleet(t, newManager())
	h, tokens := control(t, f)
	for name, row := range map[string]struct {
		method, path, role, body string
		status                   int
		says                     string
	}{
		"the state, for a viewer": {
			"GET", "/fleet", "viewer", "", 200, `"name":"edge-1"`,
		},
		"the state, for nobody": {
			"GET", "/fleet", "", "", 401, "access token",
		},
		"a change by a viewer": {
			"POST", "/fleet/drain", "viewer", `{"node":"edge-1"}`, 403, "operator",
		},
		"a change by an agent": {
			"POST", "/fleet/cut", "agent", `{"cluster":"edge"}`, 403, "operator",
		},
		"a change without a token": {
			"POST", "/fleet/drain", "", `{"node":"edge-1"}`, 401, "access token",
		},
		"drain": {
			"POST", "/fleet/drain", "operator", `{"node":"edge-3"}`, 200, `"drained":true`,
		},
		"restore, by its full name": {
			"POST", "/fleet/restore", "admin", `{"node":"edge/edge-4"}`, 200, `"edge-4"`,
		},
		"cut, by the agent's id": {
			"POST", "/fleet/cut", "operator", `{"cluster":"agent-ocm-1"}`, 200, `"cut":true`,
		},
		"heal": {
			"POST", "/fleet/heal", "operator", `{"cluster":"harbour"}`, 200, `"cut":false`,
		},
		"set": {
			"POST", "/fleet/set", "operator", `{"node":"quay-1","set":{"sca":"30"}}`, 200, `"sca":30`,
		},
		"a node that is not there": {
			"POST", "/fleet/drain", "operator", `{"node":"edge-9"}`, 404, "there are cloud-1, cloud-2",
		},
		"a cluster that is not there": {
			"POST", "/fleet/heal", "operator", `{"cluster":"x"}`, 404, "there are cloud, edge, harbour",
		},
		"a command that is not there": {
			"POST", "/fleet/burn", "operator", `{"node":"edge-1"}`, 404, "drain, restore",
		},
		"no node": {
			"POST", "/fleet/drain", "operator", `{}`, 422, `"path":"node"`,
		},
		"no cluster": {
			"POST", "/fleet/cut", "operator", `{"node":"edge-1"}`, 422, `"path":"cluster"`,
		},
		"nothing to set": {
			"POST", "/fleet/set", "operator", `{"node":"edge-1"}`, 422, `"path":"set"`,
		},
		"a body that cannot be read": {
			"POST", "/fleet/drain", "operator", `{`, 400, "not valid JSON",
		},
		"a body of another form": {
			"POST", "/fleet/drain", "operator", `{"node":7}`, 422, `"path":"node"`,
		},
		"no body": {
			"POST", "/fleet/drain", "operator", ``, 400, "empty",
		},
		"a query nobody understands": {
			"GET", "/fleet?x=1", "viewer", "", 400, "query.x",
		},
		"the wrong method for the state": {
			"DELETE", "/fleet", "admin", "", 405, "GET",
		},
		"the wrong method for a command": {
			"GET", "/fleet/drain", "admin", "", 405, "POST",
		},
		"a path below a command": {
			"POST", "/fleet/drain/now", "admin", "{}", 404, "nothing at",
		},
		"too much": {
			"POST", "/fleet/set", "operator", `{"node":"` + strings.Repeat("x", 2<<20), 413, "bytes",
		},
		"a setting that is out of bounds": {
			"POST", "/fleet/set", "operator", `{"node":"edge-1","set":{"cpu":"1.5"}}`, 422, `"path":"set.cpu"`,
		},
		"a setting that nobody knows": {
			"POST", "/fleet/set", "operator", `{"node":"edge-1","set":{"heat":"1"}}`, 422, "label:KEY",
		},
		"a device that is in no known state": {
			"POST", "/fleet/set", "operator", `{"node":"edge-1","set":{"device:a/b":"lost"}}`, 422, "busy",
		},
		"telemetry that nobody knows": {
			"POST", "/fleet/set", "operator", `{"node":"edge-1","set":{"telemetry":"all"}}`, 422, "node, none",
		},
		"waiting tasks that are no number": {
			"POST", "/fleet/set", "operator", `{"node":"edge-1","set":{"compss:sort":"many"}}`, 422, `"path":"set.compss:sort"`,
		},
		"tasks that take a time that is none": {
			"POST", "/fleet/set", "operator", `{"node":"edge-1","set":{"compss:sort":"4@NaN"}}`, 422, "40@60",
		},
		"fewer events than none": {
			"POST", "/fleet/set", "operator", `{"node":"edge-1","set":{"event:exec":"-1"}}`, 422, "3@critical",
		},
		"events without a name": {
			"POST", "/fleet/set", "operator", `{"node":"edge-1","set":{"event:":"1"}}`, 422, "event:NAME",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := send(t, h, row.method, row.path, tokens[row.role], row.body)
			require.Equal(t, row.status, w.Code, w.Body.String())
			require.Contains(t, w.Body.String(), row.says)
			if row.status >= 400 {
				require.Equal(t, problem.ContentType, w.Header().Get("Content-Type"))
				var d problem.Document
				require.NoError(t, json.Unmarshal(w.Body.Bytes(), &d))
				require.NotEmpty(t, d.TraceID)
			}
		})
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	f := newFleet(t, newManager())
	node := func() api.FleetNode {
		for _, c := range f.View().Clusters {
			for _, n := range c.Nodes {
				if n.Name == "edge-1" {
					return n
				}
			}
		}
		return api.FleetNode{}
	}
	before := node()
	err := f.Set("edge-1", map[string]string{"cpu": "NaN", "mem": "-1", "sca": "30", "cores": "0", "ram": "lots"})
	var p *problem.Error
	require.ErrorAs(t, err, &p)
	require.Equal(t, problem.Invalid, p.Kind)
	var paths []string
	for _, field := range p.Fields {
		paths = append(paths, field.Path)
	}
	require.Equal(t, []string{"set.cores", "set.cpu", "set.mem", "set.ram"}, paths, "all at once")
	require.Equal(t, before, node(), "and nothing of it was done")

	require.NoError(t, f.Set("edge-1", map[string]string{
		"cpu": "0.95", "mem": "0.8", "sca": "30", "energy": "12.5", "cores": "6", "ram": "16Gi",
		"device:squat.ai/video": "detached", "device:squat.ai/gpu": "available", "label:color": "", "label:tier": "gold",
		"compss:sort": "40", "compss:merge": "2.5@0.25", "event:exec": "3@critical", "event:open": "0",
	}))
	n := node()
	require.InDelta(t, 0.95, n.CPU, 0.001)
	require.InDelta(t, 0.8, n.Memory, 0.001)
	require.InDelta(t, 30, *n.Score, 0)
	require.InDelta(t, 12.5, n.Watts, 0)
	require.Equal(t, 6, n.Cores)
	require.Equal(t, int64(16<<30), n.RAM)
	require.Equal(t, map[string]string{"squat.ai/video": "detached", "squat.ai/gpu": "available"}, n.Devices)
	require.Equal(t, map[string]string{"shape": "circle", "zone": "north", "tier": "gold"}, n.Labels)
	require.Equal(t, map[string]string{"sort": "40@60", "merge": "2.5@0.25"}, n.Compss)
	require.Equal(t, map[string]string{"exec": "3@critical", "open": "0@high"}, n.Events)

	require.NoError(t, f.Set("edge-1", map[string]string{
		"cpu": "", "mem": "", "sca": "", "energy": "", "cores": "", "ram": "",
		"device:squat.ai/video": "", "device:squat.ai/gpu": "", "label:color": "green", "label:tier": "",
		"compss:sort": "", "compss:merge": "", "event:exec": "", "event:open": "",
	}))
	require.Equal(t, before, node(), "an empty value goes back to the file's")
}

func TestNodesAreNamedWithTheirClusterWhereNeeded(t *testing.T) {
	t.Parallel()
	plan, err := Load("../../../test/contracts/topology/topology_input.json") // clusters whose nodes are .1, .2
	require.NoError(t, err)
	f := newFleet(t, newManager(), func(o *Options) { o.Plan = plan })
	require.NoError(t, f.Drain("cluster-1/.2"))
	err = f.Drain(".2")
	require.Equal(t, problem.NotFound, problem.KindOf(err))
	require.ErrorContains(t, err, "cluster-2/.2")
}

func TestStateSurvivesAKill(t *testing.T) {
	t.Parallel()
	m := newManager()
	f := newFleet(t, m)
	j := m.put(typeCreate, "edge", "edge-1", 7)
	poll(t, f, "edge")
	require.NoError(t, f.Set("edge-1", map[string]string{"sca": "30", "label:color": "red"}))
	require.NoError(t, f.Drain("edge-2"))
	require.NoError(t, f.Cut("harbour"))
	before := f.View()

	again := newFleet(t, m, func(o *Options) { o.File = f.options.File }) // f was never told to stop
	require.Equal(t, before, again.View())
	require.Equal(t, map[string]int64{j.ID: 7}, copies(again, "edge"))
	info, err := os.Stat(f.options.File)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := New(Options{})
	require.ErrorContains(t, err, "plan")
	broken := filepath.Join(t.TempDir(), "fleet.json")
	require.NoError(t, os.WriteFile(broken, []byte("{"), 0o600))
	_, err = New(Options{Plan: Default(), File: broken, Append: discard})
	require.ErrorContains(t, err, broken)
}
