package host

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/knative"
	"github.com/littoral-project/littoral/shared/cli"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/triggers"
)

// helpless fails for every violation, as if a service that it calls were unreachable, until it is repaired.
type helpless struct {
	function.Reaction

	mended *atomic.Bool
	tries  *atomic.Int32
}

func (f helpless) React(ctx context.Context, tx *store.Tx, e cloudevents.Event) error {
	if !f.mended.Load() {
		f.tries.Add(1)
		return problem.New(problem.Unavailable, "the remediation failed")
	}
	return f.Reaction.React(ctx, tx, e)
}

// impatient are the triggers with a few quick retries instead of many slow ones.
func impatient(t *testing.T) fs.FS {
	t.Helper()
	retry, delay := regexp.MustCompile(`retry: \d+`), regexp.MustCompile(`backoffDelay: \S+`)
	quick := fstest.MapFS{}
	changed := 0
	require.NoError(t, fs.WalkDir(triggers.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(triggers.Files, path)
		changed += len(retry.FindAll(text, -1))
		text = delay.ReplaceAll(retry.ReplaceAll(text, []byte("retry: 3")), []byte("backoffDelay: PT0.01S"))
		quick[path] = &fstest.MapFile{Data: text}
		return err
	}))
	require.Positive(t, changed)
	return quick
}

// TestARemediationThatFails is retried with growing delays and then becomes a dead letter, which the command line
// shows. It is carried out when a person replays it.
func TestARemediationThatFails(t *testing.T) {
	t.Parallel()
	const act = "github.com/littoral-project/littoral/functions/cmd/policymanager-remediate"
	o := options(newHome(t))
	o.Database = storetest.URL(t)
	o.Files = map[string]fs.FS{"/knative": knative.Files, "/triggers": impatient(t)}
	o.Registry = maps.Clone(functions.Registry)
	var mended atomic.Bool
	var tries atomic.Int32
	real := o.Registry[act]
	o.Registry[act] = function.NewEntry(real.Name, real.Spec, func(env *function.Env) (helpless, error) {
		made, err := real.New(env)
		if err != nil {
			return helpless{}, err
		}
		return helpless{made.(function.Reaction), &mended, &tries}, nil
	})
	h := start(t, o)
	littoral := func(args ...string) (out string, code int) {
		var stdout, stderr bytes.Buffer
		env := map[string]string{"LITTORAL_SERVER": h.URL(), "LITTORAL_TOKEN_FILE": h.TokenFile("operator")}
		sh := cli.Shell{Stdout: &stdout, Stderr: &stderr, Getenv: func(name string) string { return env[name] }}
		code = sh.Run(t.Context(), args)
		return stdout.String() + stderr.String(), code
	}
	text := strings.Replace(example(t), "  - security: high", "", 1) // one policy, so that there is one violation
	text = strings.Replace(text, "policies:\n", "policies:\n      - security: medium\n", 1)
	var g group
	require.Equal(t, http.StatusCreated, ask(t, h.URL(), o.Home, "operator", "POST", "/jobmanager/groups", text, &g))
	available(t, h.URL(), o.Home, g.ID)
	before := nodeOf(t, h, o, g.ID, "web")
	body := `{"node": "` + before + `", "set": {"sca": "5"}}`
	require.Equal(t, http.StatusOK, ask(t, h.URL(), o.Home, "operator", "POST", "/fleet/set", body, nil))

	row := regexp.MustCompile(`([0-9a-f-]{36})\s.*remediation\.requested\s.*policymanager-remediate`)
	var found []string
	require.Eventually(t, func() bool {
		shown, code := littoral("events", "--dead", "-o", "wide")
		found = row.FindStringSubmatch(shown)
		return code == 0 && found != nil
	}, patience, 50*time.Millisecond)
	require.EqualValues(t, 4, tries.Load(), "once, and three times more")
	require.Equal(t, before, nodeOf(t, h, o, g.ID, "web"))
	shown, _ := littoral("events")
	require.Contains(t, shown, "event.dead")

	mended.Store(true)
	shown, code := littoral("replay", found[1])
	require.Zero(t, code, shown)
	require.Eventually(t, func() bool { return nodeOf(t, h, o, g.ID, "web") != before }, patience, 50*time.Millisecond)
	available(t, h.URL(), o.Home, g.ID)
	shown, _ = littoral("events", "--dead")
	require.NotContains(t, shown, found[1])
}
