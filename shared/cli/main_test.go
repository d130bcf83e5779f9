package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/cli"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/test/inprocess"
)

// asProgram makes the test's own binary the program, for scripts that run it.
const asProgram = "LITTORAL_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main())
	}
	storetest.Main(m)
}

var update = flag.Bool("update", false, "write the golden files anew")

// host is a server like a laptop host: all functions with a real store, and in front of them an aggregator and a fleet
// that answer from memory, since both need telemetry.
type host struct {
	t   *testing.T
	sys *inprocess.System
	url string
	now time.Time // the clock of the command line: long after the store's, so that printed ages are constant

	mu       sync.Mutex
	asked    int            // how often the history was requested
	onAsked  map[int]func() // called before that request
	onPath   func(r *http.Request) int
	commands []string // that the fleet got
	drained  string   // the node that telemetry reports as drained

	pods       func(*topology.Taxonomy) // adds pods; nil = there are none
	answers    map[string]any           // by method and path, instead of what functions answer: a document or an http.HandlerFunc
	staleAfter float64                  // seconds; the aggregator's setting, 0 for none
}

func newHost(t *testing.T) *host {
	t.Helper()
	return newHostWith(t, nil)
}

// newHostWith gives functions these settings.
func newHostWith(t *testing.T, given map[string]string) *host {
	t.Helper()
	later := time.Now().Add(10*time.Hour + 30*time.Minute)
	h := &host{t: t, sys: inprocess.StartWith(t, settings.Map(given)), now: later, onAsked: map[int]func(){}, drained: "edge/edge-2"}
	h.sys.SaveTopology(inprocess.Topology(time.Now()))
	target, err := url.Parse(h.sys.URL)
	require.NoError(t, err)
	functions := httputil.NewSingleHostReverseProxy(target)
	functions.ErrorLog = log.New(io.Discard, "", 0) // interrupted commands hang up
	mux := http.NewServeMux()
	mux.HandleFunc("GET /aggregator/", func(w http.ResponseWriter, _ *http.Request) {
		taxonomy := inprocess.Topology(h.now.Add(-5 * time.Second))
		h.mu.Lock()
		if h.drained != "" {
			taxonomy = inprocess.Drain(taxonomy, h.drained)
		}
		h.mu.Unlock()
		if h.staleAfter > 0 {
			taxonomy.Timestamp.StaleAfter = topology.Known(h.staleAfter)
		}
		if h.pods != nil {
			h.pods(taxonomy)
		}
		taxonomy.Warnings = []string{"the query for power failed"}
		_ = json.NewEncoder(w).Encode(taxonomy)
	})
	mux.HandleFunc("GET /fleet", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(api.Fleet{Clusters: []api.FleetCluster{fleetCluster()}})
	})
	mux.HandleFunc("POST /fleet/{command}", h.fleet)
	mux.HandleFunc("GET /jobmanager/history", func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.asked++
		act := h.onAsked[h.asked]
		h.mu.Unlock()
		if act != nil {
			act()
		}
		functions.ServeHTTP(w, r)
	})
	mux.Handle("/", functions)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.onPath != nil {
			if code := h.onPath(r); code != 0 {
				w.Header().Set("Retry-After", "0")
				if code == http.StatusOK {
					w.Header().Set("Content-Length", "99") // more than comes: the server stops in the middle
				}
				w.WriteHeader(code)
				return
			}
		}
		switch answer := h.answers[r.Method+" "+r.URL.Path].(type) {
		case nil:
			mux.ServeHTTP(w, r)
		case http.HandlerFunc:
			answer(w, r)
		default:
			_ = json.NewEncoder(w).Encode(answer)
		}
	}))
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

func fleetCluster() api.FleetCluster {
	sca := 70.0
	return api.FleetCluster{Name: "edge", Agent: "agent-edge", Orchestrator: "nuvla", Nodes: []api.FleetNode{
		{
			Name: "edge-1", Engine: "Kubernetes", Arch: "arm64", Cores: 4, RAM: 8 << 30, CPU: 0.25, Memory: 0.5,
			Score: &sca, Watts: 12.5,
			Devices: map[string]string{"/dev/video0": "busy"}, Labels: map[string]string{"zone": "shore"},
			Copies: []api.FleetCopy{{Application: "shop", Component: "camera"}},
		},
		{Name: "edge-2", Engine: "Kubernetes", Arch: "arm64", Cores: 4, RAM: 8 << 30, Drained: true, Silent: true},
	}}
}

func (h *host) fleet(w http.ResponseWriter, r *http.Request) {
	var in api.FleetCommand
	_ = json.NewDecoder(r.Body).Decode(&in)
	body, _ := json.Marshal(in)
	h.mu.Lock()
	h.commands = append(h.commands, r.PathValue("command")+" "+string(body))
	h.mu.Unlock()
	if in.Node == "edge-9" {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"type":"https://littoral.dev/problems/not-found","status":404,` +
			`"detail":"there is no node \"edge-9\"; there are edge-1, edge-2"}`))
		return
	}
	if in.Node == "" && in.Cluster == "" {
		_ = json.NewEncoder(w).Encode(api.Fleet{Clusters: []api.FleetCluster{fleetCluster()}})
		return
	}
	_ = json.NewEncoder(w).Encode(fleetCluster())
}

// work lets the agents do all pending work.
func (h *host) work() int {
	return h.sys.Agent("ocm", "agent-hub").Work() + h.sys.Agent("nuvla", "agent-edge").Work()
}

// drain makes telemetry report that node as drained, and no other.
func (h *host) drain(node string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drained = node
}

// at calls a function before the history is requested for the nth time from now on.
func (h *host) at(n int, act func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onAsked[h.asked+n] = act
}

// result is the visible result of a command.
type result struct {
	code     int
	out, err string
}

// as runs a command with a token of the role; auth.Open sends none.
func (h *host) as(ctx context.Context, role auth.Role, args ...string) result {
	h.t.Helper()
	env := map[string]string{"LITTORAL_SERVER": h.url, "LITTORAL_HOME": h.t.TempDir()}
	if role != auth.Open {
		env["LITTORAL_TOKEN"] = h.sys.Token(role)
	}
	return run(ctx, func() time.Time { return h.now }, env, "", args...)
}

// run runs a command as an operator.
func (h *host) run(args ...string) result {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute) // a command that never ends should fail here
	defer cancel()
	return h.as(ctx, auth.Operator, args...)
}

// ok runs a command that must succeed and returns its output.
func (h *host) ok(args ...string) string {
	h.t.Helper()
	r := h.run(args...)
	require.Zero(h.t, r.code, "%s\n%s", r.out, r.err)
	return r.out
}

func run(ctx context.Context, now func() time.Time, env map[string]string, stdin string, args ...string) result {
	var out, errs bytes.Buffer
	sh := cli.Shell{
		Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Now: now, Poll: time.Millisecond,
		Getenv: func(key string) string { return env[key] },
		Exec:   func(string, []string, []string) error { return nil },
		Edit:   edit(env["EDIT"]),
		Open:   func(context.Context, string) error { return nil },
	}
	code := sh.Run(ctx, args)
	return result{code, out.String(), errs.String()}
}

// transcript is a session as on a terminal.
type transcript struct {
	strings.Builder
}

func (tr *transcript) add(r result, args ...string) {
	fmt.Fprintf(tr, "$ littoral %s\n%s", strings.Join(args, " "), r.out)
	if r.err != "" {
		fmt.Fprintf(tr, "%s", indent(r.err, "! "))
	}
	if r.code != 0 {
		fmt.Fprintf(tr, "[exit %d]\n", r.code)
	}
	tr.WriteString("\n")
}

func indent(text, by string) string {
	return by + strings.Join(strings.Split(strings.TrimSuffix(text, "\n"), "\n"), "\n"+by) + "\n"
}

var (
	wholeID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[457][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	instant = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	clock   = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d([+-]\d\d:\d\d)?`)
	traces  = regexp.MustCompile(`\b[0-9a-f]{32}\b`)
	entry   = regexp.MustCompile(`(?m)\bevent/\d+$`)
	port    = regexp.MustCompile(`127\.0\.0\.1:\d+`)
)

// steady replaces what differs between runs by text of the same length, so that columns stay.
func steady(text string) string {
	known := map[string]string{}
	text = wholeID.ReplaceAllStringFunc(text, func(id string) string {
		if known[id] == "" {
			known[id] = fmt.Sprintf("%08d-0000-4000-8000-%012[1]d", len(known)+1)
		}
		return known[id]
	})
	for id, steady := range known {
		text = strings.ReplaceAll(strings.ReplaceAll(text, id[:8], steady[:8]), id[28:], steady[28:])
	}
	text = entry.ReplaceAllString(text, "event/N")
	text = instant.ReplaceAllString(text, "2026-01-01T12:00:00Z")
	text = clock.ReplaceAllString(text, "2026-01-01 12:00:00")
	return port.ReplaceAllString(text, "127.0.0.1:8080")
}

// golden compares with a file of testdata; -update writes it.
func golden(t *testing.T, name, have string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	have = steady(have)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(have), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "write it with: go test ./shared/cli -update")
	require.Equal(t, string(want), have, "if this is meant: go test ./shared/cli -update")
}

// watched is an output that calls a function the first time that it contains a text.
type watched struct {
	bytes.Buffer

	want map[string]func()
}

func (w *watched) Write(text []byte) (int, error) {
	n, err := w.Buffer.Write(text)
	for wanted, act := range w.want {
		if strings.Contains(w.String(), wanted) {
			delete(w.want, wanted)
			act()
		}
	}
	return n, err
}

// watch runs a command as an operator with that output.
func (h *host) watch(ctx context.Context, out io.Writer, args ...string) int {
	env := map[string]string{"LITTORAL_SERVER": h.url, "LITTORAL_HOME": h.t.TempDir(), "LITTORAL_TOKEN": h.sys.Token(auth.Operator)}
	sh := cli.Shell{
		Stdin: strings.NewReader(""), Stdout: out, Stderr: out, Now: func() time.Time { return h.now }, Poll: time.Millisecond,
		Getenv: func(key string) string { return env[key] },
	}
	return sh.Run(ctx, args)
}
