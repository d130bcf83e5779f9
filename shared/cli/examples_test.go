package cli_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/cli"
)

// inOrder are the commands whose examples run one after the other on one host, so that each has what it is about.
var inOrder = []string{
	"version", "completion", "whoami", "context add", "context list", "context use", "context remove", "add controller", "get controllers",
	"controllers", "describe controller", "get nodes", "get clusters", "get resource", "describe node", "describe cluster", "generate",
	"plan", "whatif apply", "apply", "explain", "diff", "wait app", "get apps", "get jobs", "get deployment", "describe app", "describe job",
	"tree", "history", "get revisions", "describe revision", "events", "get policies", "describe policy", "policy set", "policy deactivate", "policy activate", "violations",
	"get violations", "top apps", "top nodes", "whatif drain", "whatif cut", "whatif set", "cordon", "uncordon", "pin", "rollback", "edit",
	"update deployment", "stop app", "start app", "stop deployment", "start deployment", "get handovers", "fleet list", "fleet drain",
	"fleet restore", "fleet cut", "fleet heal", "fleet set", "delete app", "create deployment", "delete deployment", "submit", "logout",
}

// elsewhere are those that need more than a host of functions, and the tests that run them.
var elsewhere = map[string]string{
	"login": "TestLoginByDevice in test/e2e/login", "auth login": "the same", "auth logout": "the same", "up": "infra/runner/littoral-up",
	"backup": "infra/backup", "restore": "infra/backup", "doctor": "TestDoctor",
	"suggestions": "TestSuggestions", "suggestion confirm": "the same", "suggestion dismiss": "the same",
	"console": "TestTheOtherCommands", "drain": "the same", "replay": "the same", "scale": "the same", "logs": "the same",
	"move": "the same", "policy render": "the same", "policy backtest": "the same",
}

var exampleOf = regexp.MustCompile(`(?s)Examples?:\s+(?:[A-Z]+=\S+\s+)?littoral\s+(.*?)(?:;|\n\n|\n?$)`)

// unsteady are those whose output is long or of the moment.
var unsteady = []string{"completion", "version", "generate", "logout"}

// TestTheExampleInEachHelpRuns, as it is written there but for what only the host can name; the golden file has what they print
// where the output goes to a pipe. A table is no wider than 80 columns.
func TestTheExampleInEachHelpRuns(t *testing.T) {
	t.Parallel()
	tr := runExamples(t, run, "", func(path, line, text string) {
		if n := len([]rune(text)); n > 80 && !strings.Contains(line, "-o ") && !slices.Contains(sentences, path) {
			t.Errorf("%s: %d columns: %s", line, n, text)
		}
	})
	golden(t, "examples.golden", tr)
}

// runner runs one command.
type runner func(ctx context.Context, now func() time.Time, env map[string]string, stdin string, args ...string) result

// runExamples runs the examples in order, has each line looked at, and returns what was shown, but for what differs between runs.
// form, if any, is that of all of them.
func runExamples(t *testing.T, run runner, form string, look func(path, line, text string)) string {
	t.Helper()
	leaves := cli.Leaves()
	for _, path := range leaves {
		require.True(t, slices.Contains(inOrder, path) != (elsewhere[path] != ""), "%q: either run its example, or say who does", path)
	}
	require.Len(t, inOrder, len(leaves)-len(elsewhere))

	h := newHost(t)
	dir := t.TempDir()
	env := map[string]string{
		"LITTORAL_SERVER": h.url, "LITTORAL_HOME": t.TempDir(), "LITTORAL_TOKEN": h.sys.Token("admin"), "XDG_CONFIG_HOME": t.TempDir(),
		"EDIT": "blue=green",
	}
	now := func() time.Time { return h.now }
	names := []string{"shop.yaml", "testdata/shop.yaml", "world", filepath.Join(dir, "world")}
	var tr transcript
	for _, path := range inOrder {
		words := strings.Fields(path)
		help := run(t.Context(), now, env, "", append(words, "--help")...)
		found := exampleOf.FindStringSubmatch(help.out)
		require.NotNil(t, found, "%s --help has no example:\n%s", path, help.out)
		line := strings.NewReplacer(names...).Replace(strings.Join(strings.Fields(found[1]), " "))
		line = strings.Replace(line, "logs -f", "logs", 1)                                     // which would go on
		line = strings.Replace(line, "--server https://harbour.example", "--server "+h.url, 1) // which is there
		if strings.HasPrefix(path, "delete") {
			h.at(1, func() { h.work() })
			h.at(2, func() { h.work() })
		}
		if formless[path] == "" {
			line = inForm(line, form)
		}
		r := run(t.Context(), now, env, "", strings.Fields(line)...)
		want := 0
		if path == "plan" {
			want = 1 // there are changes
		}
		if r.code != want {
			t.Errorf("%s: exit %d\n%s%s", line, r.code, r.out, r.err)
		}
		if !slices.Contains(unsteady, path) {
			for text := range strings.SplitSeq(r.out, "\n") {
				look(path, line, text)
			}
			tr.add(r, strings.Fields(line)...)
		}
		if form != "" && formless[path] == "" {
			inItsForm(t, form, line, r.out)
		}
		if path == "apply" || path == "rollback" || path == "scale" || path == "pin" || path == "edit" || path == "update deployment" || strings.HasPrefix(path, "st") {
			for h.work() > 0 {
				continue
			}
		}
		if path == "apply" {
			require.NoError(t, h.sys.Broker.Drain(t.Context())) // which brings the policies
			var jobs []api.Job
			require.NoError(t, json.Unmarshal([]byte(h.ok("get", "jobs", "-o", "json")), &jobs))
			var policies []api.Policy
			require.NoError(t, json.Unmarshal([]byte(h.ok("get", "policies", "-o", "json")), &policies))
			names = append(names, "3f2a91c0", jobs[0].ID, "busy-hosts", policies[0].Name, "limit=0.8", "threshold=0.8", "--revision 2", "--revision 1")
		}
	}
	return left.ReplaceAllString(took.ReplaceAllString(hideTraces(tr.String()), "about 1.0 s"), "(in 1h)")
}

// inForm is a command line that asks for a form.
func inForm(line, form string) string {
	if form == "" {
		return line
	}
	return asked.ReplaceAllString(line, "") + " -o " + form
}

var (
	asked = regexp.MustCompile(` -o \w+`)
	left  = regexp.MustCompile(`\(in -?[0-9hms]+\)`) // until a token ends
)

// sentences are of those that say why, which a terminal gets in lines that fit.
var sentences = []string{"events", "explain", "plan", "whatif apply", "describe app", "describe policy", "describe job"}
