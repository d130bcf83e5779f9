package cli_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/cli"
	"github.com/littoral-project/littoral/shared/topology"
)

// completers ask a real shell, which has the script, what a typed line may become. zsh needs a terminal to show what it found, so
// what it would show is printed instead.
var completers = map[string]string{
	"bash": `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _littoral; printf '%s\n' "${COMPREPLY[@]}"`,
	"zsh": `compdef() { : }; _files() { : }; _describe() { print -l -- "${(@)choices%%:*}" }
source "$1"; shift; words=("$@"); CURRENT=$#; _littoral`,
	"fish": `source $argv[1]; complete -C "$argv[2..-1]" | string replace -r '\t.*' ''; true`,
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	program := "#!/bin/sh\n" + asProgram + "=1 exec '" + self + "' \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "littoral"), []byte(program), 0o700))
	for shell, ask := range completers {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			interpreter, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("there is no %s here", shell)
			}
			script := filepath.Join(dir, shell)
			require.NoError(t, os.WriteFile(script, []byte(h.ok("completion", shell)), 0o600))
			for typed, want := range map[string]string{
				"littoral ge":                    "generate get",
				"littoral get no":                "nodes",
				"littoral fleet dr":              "drain",
				"littoral wait app shop --f":     "--for",
				"littoral get apps --ser":        "--server",
				"littoral get apps --health De":  "Degraded",
				"littoral zzz a":                 "",
				"littoral describe app sh":       "shop",
				"littoral describe sh":           "shop",
				"littoral scale shop w":          "web",
				"littoral pin shop/":             "shop/camera shop/web",
				"littoral cordon edge-":          "edge-1 edge-2",
				"littoral get nodes --cluster e": "edge",
			} {
				if want == "" && shell == "fish" {
					continue // it offers files by itself
				}
				args := append([]string{ask, shell, script}, strings.Split(typed, " ")...)
				if shell == "fish" {
					args = append([]string{ask, script}, typed)
				}
				cmd := exec.CommandContext(t.Context(), interpreter, append([]string{"-c"}, args...)...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "LITTORAL_SERVER="+h.url,
					"LITTORAL_TOKEN="+h.sys.Token(auth.Viewer), "HOME="+dir, "XDG_CONFIG_HOME="+dir)
				out, err := cmd.Output()
				require.NoError(t, err, "%s: %s", typed, out)
				found := strings.Fields(string(out))
				slices.Sort(found)
				require.Equal(t, want, strings.Join(found, " "), typed)
			}
		})
	}
}

func TestTypesAndNamesAreWrittenInEveryWay(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	id := strings.TrimSpace(strings.TrimPrefix(h.ok("apply", "-f", "testdata/shop.yaml", "-o", "name"), "app/"))
	want := h.ok("describe", "app", "shop")
	for _, form := range []string{"describe shop", "describe app/shop", "describe apps/shop", "describe app/" + id} {
		require.Equal(t, want, h.ok(strings.Fields(form)...), form)
	}
	require.Equal(t, "app/"+id+"\n", h.ok("get", "apps", "-o", "name"))
	require.Equal(t, h.ok("get", "apps", "shop"), h.ok("get", "app/shop"))
	require.Contains(t, h.ok("get", "nodes", "-o", "name"), "node/hub/hub-1\n")
	require.Contains(t, h.ok("stop", "shop", "-o", "json"), `"desired": "stopped"`)
	require.Equal(t, "app/"+id+"\n", h.ok("start", "shop", "-o", "name"))
	h.onPath = func(r *http.Request) int {
		if r.URL.Path == "/jobmanager/history" {
			h.work()
		}
		return 0
	}
	require.Contains(t, h.ok("wait", "shop", "-o", "yaml"), "appName: shop\n")
	require.Equal(t, "app/"+id+"\n", h.ok("delete", "shop", "--no-wait", "-o", "name"))
}

// TestTheWordsOfICOSShell: its documented commands do what they did there.
func TestTheWordsOfICOSShell(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	require.Contains(t, h.ok("create", "deployment", "--file", "testdata/shop.yaml"), "application shop created")
	require.Equal(t, h.ok("get", "apps"), h.ok("get", "deployment"))
	require.Equal(t, h.ok("get", "nodes"), h.ok("get", "resource"))
	require.Contains(t, h.ok("update", "deployment", "--id", "shop", "--file", "testdata/shop-green.yaml"), "application shop updated")
	require.Contains(t, h.ok("stop", "deployment", "--id", "shop"), "stopping")
	require.Contains(t, h.ok("delete", "deployment", "--id", "shop"), "application shop")
	add := h.as(t.Context(), auth.Controller, "add", "controller", "-n", "harbour", "-a", "http://harbour.example")
	require.Equal(t, "controller harbour added: http://harbour.example\n", add.out, add.err)
	require.Contains(t, h.ok("get", "controller"), "harbour")
	r := h.run("delete", "deployment")
	require.Equal(t, 2, r.code, r.err)
	require.Contains(t, h.run("auth", "logout").out, "Nobody is signed in")
}

func TestDescribeShowsEverythingThatGetLists(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	var jobs []struct {
		ID string `json:"id"`
	}
	require.NoError(t, json.Unmarshal([]byte(h.ok("get", "jobs", "-o", "json")), &jobs))
	require.Contains(t, h.ok("describe", "job", jobs[0].ID), "Application:  shop")
	node := h.ok("describe", "node", "hub-1")
	require.Contains(t, node, "Node:         hub/hub-1")
	require.Contains(t, h.ok("describe", "cluster", "hub"), "hub-1")
	require.Equal(t, 1, h.run("describe", "node", "nowhere").code)
	require.Contains(t, h.run("describe", "job", "ffffffff").err, `there is no job "ffffffff"`)
	require.Contains(t, h.run("describe", "controller", "harbour").err, `knows no controller "harbour"`)
	narrow(t, h.run("top", "nodes"))
	narrow(t, h.run("top", "apps"))
	require.Contains(t, h.ok("top", "nodes"), "█")
	require.Contains(t, h.ok("top", "apps", "-o", "json"), `"component": "web"`)
	require.Contains(t, h.ok("events", "--type", "application.submitted", "--app", "shop"), "application.submitted")
	require.Contains(t, h.run("events", "--component", "nothing").err, "No events")
	require.Contains(t, h.run("events", "--since", "1s").err, "No events", "the clock of the test is hours ahead")
}

// TestTopDrawsTheLastHour: as telemetry has it, and where that has nothing, what was seen.
func TestTopDrawsTheLastHour(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.pods = func(t *topology.Taxonomy) {
		n := t.Cluster["hub"].Node["hub-1"]
		n.UUID = "machine-1"
		t.Cluster["hub"].Node["hub-1"] = n
	}
	h.ok("apply", "-f", "testdata/shop.yaml")
	var apps []api.Application
	require.NoError(t, json.Unmarshal([]byte(h.ok("get", "apps", "-o", "json")), &apps))
	require.Regexp(t, `hub-1 .* ▁\n`, h.ok("top", "nodes"), "one value")
	var asked []string
	h.answers = map[string]any{"GET /telemetry/series": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, q.Get("use")+q.Get("query")+" "+q.Get("since")+" "+q.Get("step"))
		labels := map[string]string{"icos_host_id": "machine-1", "icos_app_instance": apps[0].ID, "icos_app_component": "web"}
		_ = json.NewEncoder(w).Encode(map[string]any{"query": "", "step": 300, "series": []any{
			map[string]any{"labels": labels, "points": [][]any{{1, 0}, {2, 50}, {3, nil}, {4, 99}}},
		}})
	})}
	require.Regexp(t, `hub-1 .* ▁▅█\n`, h.ok("top", "nodes"))
	require.Regexp(t, `shop +web .* ▁▅█ `, h.ok("top", "apps"))
	require.Equal(t, []string{
		`100 * (1 - avg by (icos_host_id) (irate(node_cpu_seconds_total{mode="idle"}[5m]))) 1h0m0s 5m0s`, "cpu 1h0m0s 5m0s",
	}, asked)
	require.Contains(t, h.ok("top", "apps", "-o", "json"), "cpuCoresTrend")
}

// TestAllControllersAreAsked: one that does not answer is shown as such, and in time.
func TestAllControllersAreAsked(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)
	for name, address := range map[string]string{"here": h.url, "silent": silent.URL, "gone": "http://127.0.0.1:1"} {
		require.Zero(t, h.as(t.Context(), auth.Controller, "add", "controller", "-n", name, "-a", address).code)
	}
	r := h.run("get", "apps", "-A", "--deadline", "1s")
	require.Equal(t, 1, r.code, "what was said is not all")
	require.Regexp(t, `(?m)^here +shop `, r.out)
	require.Regexp(t, `(?m)^silent +- +- +Unknown`, r.out)
	require.Contains(t, r.err, "controller silent: no answer within 1s")
	require.Contains(t, r.err, "controller gone: ")
	narrow(t, r)
}

func TestUpWritesAContext(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	require.NoError(t, os.MkdirAll(home, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(home, api.AddressFile), []byte(h.url+"\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(home, "token-admin"), []byte(h.sys.Token(auth.Admin)), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "littoral-up"), []byte("#!/bin/sh\n"), 0o700))
	self, err := os.Executable()
	require.NoError(t, err)
	program := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), self, args...)
		cmd.Dir = dir
		cmd.Env = []string{asProgram + "=1", "PATH=" + dir + ":" + os.Getenv("PATH"), "XDG_CONFIG_HOME=" + dir}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	program("up", "--home", home)
	require.Contains(t, program("context", "list"), "laptop   "+h.url)
	require.Contains(t, program("--context", "laptop", "whoami"), "admin")
}

// formless are the commands without -o, and why.
var formless = map[string]string{
	"completion": "prints a script for a shell",
	"console":    "opens a browser",
	"up":         "becomes the host, which prints what it does until it is ended",
	"backup":     "becomes littoral-backup, whose result is a file",
	"restore":    "becomes littoral-backup, whose result is the database",
}

// TestEveryCommandHasItsForms: a table, a wide one, JSON, YAML and names; each command of the tree is run in each of them.
func TestEveryCommandHasItsForms(t *testing.T) {
	t.Parallel()
	for path, forms := range cli.Forms() {
		if formless[path] != "" {
			require.Empty(t, forms, path)
			continue
		}
		require.Subset(t, forms, []string{"table", "wide", "json", "yaml", "name"}, "%s -o", path)
	}
	for _, form := range []string{"wide", "json", "yaml", "name"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			examples := runExamples(t, run, form, func(string, string, string) {})
			others := runOthers(t, run, form)
			if form == "wide" || form == "name" {
				golden(t, "examples."+form+".golden", examples)
				golden(t, "others."+form+".golden", others)
			}
		})
	}
}

// plainNames are of what no command takes: files, a version, a person, a server.
var plainNames = []string{"generate", "version", "whoami", "logout"}

// inItsForm requires that an output is in the form.
func inItsForm(t *testing.T, form, line, out string) {
	t.Helper()
	switch command, _, _ := strings.Cut(line, " "); form {
	case "json":
		for decoder := json.NewDecoder(strings.NewReader(out)); ; { // of logs there are several
			var v any
			if err := decoder.Decode(&v); errors.Is(err, io.EOF) {
				return
			} else if !assert.NoError(t, err, line) {
				return
			}
		}
	case "yaml":
		for document := range strings.SplitSeq(out, "---\n") {
			var v any
			assert.NoError(t, yaml.Unmarshal([]byte(document), &v), line)
			_, text := v.(string)
			assert.False(t, text, "%s: %s", line, out)
		}
	case "name":
		for name := range strings.Lines(out) {
			if slices.Contains(plainNames, command) {
				assert.Regexp(t, `^\S+\n$`, name, line)
			} else {
				assert.Regexp(t, `^[a-z]+/\S+\n$`, name, line)
			}
		}
	}
}

// TestWhatIsNamedIsTaken by commands as -o name prints it.
func TestWhatIsNamedIsTaken(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	for h.work() > 0 {
		continue
	}
	first := func(line string) string {
		t.Helper()
		return strings.Fields(h.ok(strings.Fields(line + " -o name")...))[0]
	}
	app, node, cluster := first("get apps"), first("get nodes"), first("get clusters")
	policy, job, component := first("get policies"), first("get jobs"), first("explain app shop")
	require.Equal(t, "component/shop/web", component)
	for _, line := range []string{
		"tree " + app, "history " + app, "explain app " + app, "describe " + node, "describe node " + node, "describe " + cluster,
		"describe " + job, "describe job " + job, "policy deactivate " + policy, "cordon " + node, "uncordon " + node,
		"whatif drain " + node, "whatif cut " + cluster, "pin " + component + " edge-1", "events " + app, "top apps " + app,
	} {
		h.ok(strings.Fields(line)...)
	}
}

// TestEventsNameWhatIsDeleted, not by its id.
func TestEventsNameWhatIsDeleted(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	for h.work() > 0 {
		continue
	}
	h.ok("delete", "app", "shop", "--no-wait")
	for h.work() > 0 {
		continue
	}
	require.Contains(t, h.run("get", "apps").err, "No applications")
	require.Regexp(t, `application\.deleted +shop `, h.ok("events"))
}
