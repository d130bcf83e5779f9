package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/cli"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/logs/files"
)

// terminal is a pseudo-terminal: the side that programs write to, and what came out at the other.
type terminal struct {
	*os.File

	shown chan string
}

func newTerminal(t *testing.T, columns uint16) *terminal {
	t.Helper()
	other, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(other.Fd()), unix.TIOCSPTLCK, 0)) // unlocks it
	n, err := unix.IoctlGetInt(int(other.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	file, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(file.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	term := &terminal{file, make(chan string, 1)}
	go func() {
		defer func() { _ = other.Close() }()
		text, _ := io.ReadAll(other) // ends with an error when the program's side is closed
		term.shown <- strings.ReplaceAll(string(text), "\r\n", "\n")
	}()
	return term
}

// onTerminal is run on a terminal of so many columns. What is for people and not for programs, as warnings, is kept apart.
func onTerminal(t *testing.T, columns uint16) runner {
	return func(ctx context.Context, now func() time.Time, env map[string]string, stdin string, args ...string) result {
		t.Helper()
		term := newTerminal(t, columns)
		var errs bytes.Buffer
		sh := cli.Shell{
			Stdin: strings.NewReader(stdin), Stdout: term.File, Stderr: &errs, Now: now, Poll: time.Millisecond,
			Getenv: func(key string) string { return env[key] },
			Exec:   func(string, []string, []string) error { return nil },
			Edit:   edit(env["EDIT"]),
			Open:   func(context.Context, string) error { return nil },
		}
		code := sh.Run(ctx, args)
		require.NoError(t, term.Close())
		return result{code, <-term.shown, errs.String()}
	}
}

var (
	live    = regexp.MustCompile(`\r\x1b\[K([-|/\\] [^\r\n]*)?`)
	colours = regexp.MustCompile(`\x1b\[(\d+)m`)
)

// visible writes colours as <green> and </>, and leaves out the live line, which shows the moment.
func visible(text string) string {
	text = live.ReplaceAllString(text, "")
	names := map[string]string{"31": "<red>", "32": "<green>", "33": "<yellow>", "0": "</>"}
	return colours.ReplaceAllStringFunc(text, func(code string) string { return names[colours.FindStringSubmatch(code)[1]] })
}

// TestTheExamplesOnATerminal: what each command shows on a terminal of 80 columns, which no line exceeds unless it was asked for wide.
func TestTheExamplesOnATerminal(t *testing.T) {
	t.Parallel()
	tr := runExamples(t, onTerminal(t, 80), "", func(path, line, text string) {
		if strings.Contains(line, "-o ") || path == "completion" {
			return
		}
		if n := len([]rune(colours.ReplaceAllString(live.ReplaceAllString(text, ""), ""))); n > 80 {
			t.Errorf("%s: %d columns: %s", line, n, text)
		}
	})
	require.Contains(t, tr, "\x1b[32mAvailable\x1b[0m")
	golden(t, "examples.terminal.golden", visible(tr))
}

// TestColours are on a terminal that wants them, and the live line on one that can.
func TestColours(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	for name, row := range map[string]struct {
		env           map[string]string
		colours, live bool
	}{
		"a terminal": {nil, true, true},
		"NO_COLOR":   {map[string]string{"NO_COLOR": "1"}, false, true},
		"dumb":       {map[string]string{"TERM": "dumb"}, false, false},
	} {
		env := map[string]string{"LITTORAL_SERVER": h.url, "LITTORAL_HOME": t.TempDir(), "LITTORAL_TOKEN": h.sys.Token("operator")}
		for key, value := range row.env {
			env[key] = value
		}
		show := onTerminal(t, 80)
		clock := func() time.Time { return h.now }
		r := show(t.Context(), clock, env, "", "get", "apps")
		require.Zero(t, r.code, r.err)
		require.Equal(t, row.colours, strings.Contains(r.out, "\x1b["), "%s: %q", name, r.out)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r = show(ctx, clock, env, "", "wait", "app", "shop", "--timeout", "500ms")
		cancel()
		require.NotZero(t, r.code, "nobody works")
		require.Equal(t, row.live, strings.Contains(r.out, "\r\x1b[K"), "%s: %q", name, r.out)
	}
}

// TestANarrowTerminal: tables fit it, and nothing of the reasons is lost.
func TestANarrowTerminal(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	for h.work() > 0 {
		continue
	}
	env := map[string]string{"LITTORAL_SERVER": h.url, "LITTORAL_HOME": t.TempDir(), "LITTORAL_TOKEN": h.sys.Token("operator"), "NO_COLOR": "1"}
	for _, line := range []string{"get jobs", "get apps", "events", "explain app shop", "describe app shop", "plan -f testdata/shop-green.yaml"} {
		r := onTerminal(t, 60)(t.Context(), func() time.Time { return h.now }, env, "", strings.Fields(line)...)
		for text := range strings.SplitSeq(r.out, "\n") {
			require.LessOrEqual(t, len([]rune(text)), 60, "%s: %s", line, text)
		}
		if strings.HasPrefix(line, "explain") {
			require.Contains(t, strings.Join(strings.Fields(r.out), " "), "needs architecture arm64, the node has amd64; device: needs 1 device")
		}
	}
}

// TestTheOtherCommands shows what the commands print that need more than the host of the examples, through a pipe and on a terminal of 80
// columns. Those that sign in or start a host are run by test/e2e/login and infra/runner/littoral-up.
func TestTheOtherCommands(t *testing.T) {
	t.Parallel()
	golden(t, "others.golden", runOthers(t, run, ""))
	golden(t, "others.terminal.golden", visible(runOthers(t, func(
		ctx context.Context, now func() time.Time, env map[string]string, stdin string, args ...string,
	) result {
		r := onTerminal(t, 80)(ctx, now, env, stdin, args...)
		for text := range strings.SplitSeq(visible(r.out), "\n") {
			plain := strings.NewReplacer("<red>", "", "<green>", "", "<yellow>", "", "</>", "").Replace(text)
			if args[0] != "logs" { // whose lines are as they were written
				require.LessOrEqual(t, len([]rune(plain)), 80, "%s: %s", args, text)
			}
		}
		return r
	}, "")))
}

func runOthers(t *testing.T, run runner, form string) string {
	t.Helper()
	dir := t.TempDir()
	h := newHostWith(t, map[string]string{
		"LOGS_BACKEND": "files", "LOGS_DIR": dir, "CONTROLLER_NAME": "shore",
		"CONTROLLER_PEERS": `[{"name": "harbour", "address": "http://127.0.0.1:1"}]`,
	})
	file := filepath.Join(t.TempDir(), "web.yaml")
	require.NoError(t, os.WriteFile(file, []byte(web), 0o600))
	h.ok("apply", "-f", file)
	h.ok("apply", "-f", "testdata/shop.yaml")
	for h.work() > 0 {
		continue
	}
	require.NoError(t, h.sys.Broker.Drain(t.Context())) // which brings the policies
	var apps []api.Application
	require.NoError(t, json.Unmarshal([]byte(h.ok("get", "apps", "-o", "json")), &apps))
	shop := slices.IndexFunc(apps, func(a api.Application) bool { return a.Name == "shop" })
	var policies []api.Policy
	require.NoError(t, json.Unmarshal([]byte(h.ok("get", "policies", "-o", "json")), &policies))
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	require.NoError(t, files.New(files.Options{Dir: dir}).Write(t.Context(), []logs.Entry{{
		At: time.Now(), Application: apps[shop].ID, Component: "web", Cluster: "edge", Node: "edge-1", Pod: "web-1", Container: "web",
		Stream: "stdout", Line: strings.Repeat("a long line ", 10),
	}}))
	e, err := events.New(t.Context(), "/functions/jobmanager-group-create", events.ApplicationSubmitted, apps[shop].ID,
		events.Application{Name: "shop"})
	require.NoError(t, err)
	h.die(e, "matchmaker-place", "422", `{"detail": "the matchmaker takes nothing that it cannot read, and says why at some length"}`)
	value, series := 0.97, 1
	h.answers = map[string]any{"POST /polman/registry/api/v1/render": api.Shown{
		Expr: `avg by (icos_host_name) (node_cpu_usage{icos_app_name="shop"}) > 0.9`, ViolatedIf: "> 0.9", Series: &series, Violating: &series,
		Value: &value, Samples: []api.Sample{{Labels: map[string]string{"icos_host_name": "edge-1"}, Value: value}},
	}, "POST /polman/registry/api/v1/backtest": api.Past{Evaluations: 240, Episodes: []api.Episode{{
		Labels: map[string]string{"icos_host_name": "edge-1", "icos_app_component": "web"}, From: at, FiredAt: at.Add(time.Minute),
		To: at.Add(time.Hour), Peak: &value,
	}}, Forecast: &api.Foreseen{Ahead: "30m", Violations: 2, Earlier: 1, SecondsEarlier: 900, InVain: 1}}}
	env := map[string]string{"LITTORAL_SERVER": h.url, "LITTORAL_HOME": t.TempDir(), "LITTORAL_TOKEN": h.sys.Token("admin")}
	var tr transcript
	for _, line := range []string{
		"scale web front 3", "logs shop", "policy render " + policies[0].ID, "policy backtest " + policies[0].ID + " --since 6h", "events --dead",
		"replay " + e.ID(), "drain edge-2 --deadline 5m", "move shop --to harbour", "get handovers", "explain -f " + file, "console",
	} {
		if formless[line] == "" {
			line = inForm(line, form)
		}
		args := strings.Fields(line)
		r := run(t.Context(), func() time.Time { return h.now }, env, "", args...)
		require.Zero(t, r.code, "%s: %s%s", line, r.out, r.err)
		if form != "" && strings.HasSuffix(line, form) {
			inItsForm(t, form, line, r.out)
		}
		tr.add(r, args...)
	}
	text := strings.ReplaceAll(tr.String(), file, "web.yaml")
	return clockOnly.ReplaceAllString(hideTraces(text), "12:00:00")
}
