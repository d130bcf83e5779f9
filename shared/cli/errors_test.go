package cli_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/cli"
	"github.com/littoral-project/littoral/shared/loopback"
	"github.com/littoral-project/littoral/test/inprocess"
)

// TestEveryErrorSaysWhatToDo checks exit codes and texts of errors.
func TestEveryErrorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/huge.yaml")
	h.ok("submit", "-f", "testdata/shop.yaml")
	h.ok("submit", "-f", "testdata/shop.yaml")
	for name, row := range map[string]struct {
		role auth.Role
		args string
		code int
		says []string
	}{
		"a descriptor with faults has them all, with path and line": {
			auth.Operator, "apply -f testdata/broken.yaml", 1,
			[]string{
				"name (line 1)", "components[0].requirements.cpu (line 5)", "components[0].requirements.memory (line 5)",
				"Nothing was changed",
			},
		},
		"so has plan, which has an exit code of its own": {
			auth.Operator, "plan -f testdata/broken.yaml", 255, []string{"components[0].requirements.cpu (line 5)"},
		},
		"so has explain": {
			auth.Operator, "explain -f testdata/broken.yaml", 1, []string{"components[0].requirements.cpu (line 5)"},
		},
		"an expression that cannot be parsed has a caret, and warnings come with it": {
			auth.Operator, "apply -f testdata/blind.yaml", 1, []string{
				"policies[0].spec.expr (line 8): is no PromQL", "\n      rate(foo[5m\n                 ^\n",
				"warning: colour (line 2): unknown key, ignored",
			},
		},
		"a descriptor with warnings, applied strictly": {
			auth.Operator, "apply --strict -f testdata/odd.yaml", 1, []string{"colour (line 2): unknown key, ignored", "strict"},
		},
		"submitted strictly": {
			auth.Operator, "submit --strict -f testdata/odd.yaml", 1, []string{"colour (line 2): unknown key, ignored", "strict"},
		},
		"planned strictly": {
			auth.Operator, "plan --strict -f testdata/odd.yaml", 255, []string{"colour (line 2): unknown key, ignored", "strict"},
		},
		"a file that is not there": {
			auth.Operator, "apply -f testdata/none.yaml", 1, []string{"testdata/none.yaml", "no such file"},
		},
		"no token": {auth.Open, "get apps", 1, []string{"No access token was sent", "--token-file", "littoral up"}},
		"a role that is too low": {
			auth.Viewer, "stop app huge", 1, []string{`needs the role "operator"`, "LITTORAL_TOKEN", "--token-file"},
		},
		"a server whose address leads elsewhere in it": {
			auth.Operator, "get apps --server " + h.url + "/elsewhere", 1, []string{"there is nothing at /elsewhere/", "Check --server"},
		},
		"no such application": {
			auth.Operator, "describe app nowhere", 1, []string{`no application "nowhere"`, "littoral get apps"},
		},
		"no such id": {
			auth.Operator, "describe app 01234567-89ab-4def-8123-456789abcdef", 1,
			[]string{"no application 0123", "littoral get apps"},
		},
		"a name that several have": {
			auth.Operator, "describe app shop", 1, []string{`"shop" means 2 applications`, "Name one by its id"},
		},
		"an apply that could mean several": {
			auth.Operator, "apply -f testdata/shop.yaml", 1, []string{`2 applications named "shop"`, "littoral submit", "--app ID"},
		},
		"an apply to one of them of several files": {
			auth.Operator, "apply -f testdata/shop.yaml -f testdata/huge.yaml --app huge", 2, []string{"--app", "one file"},
		},
		"an apply to one of them that is to be new": {
			auth.Operator, "apply -f testdata/huge.yaml --app huge --new", 2, []string{"--app", "--new"},
		},
		"several files, of which one is not taken": {
			auth.Operator, "apply -f testdata/broken.yaml -f testdata/huge.yaml -f testdata/shop.yaml", 1,
			[]string{
				"testdata/broken.yaml was not applied", "not tried after it: testdata/huge.yaml, testdata/shop.yaml",
				"components[0].requirements.cpu (line 5)",
			},
		},
		"a file with nothing in it": {
			auth.Operator, "plan -f " + os.DevNull, 255, []string{"the descriptor is empty: there is nothing in " + os.DevNull},
		},
		"standard input with nothing in it": {
			auth.Operator, "apply -f -", 1, []string{"the descriptor is empty: there is nothing in standard input"},
		},
		"https where http is spoken": {
			auth.Operator, "get apps --server " + strings.Replace(h.url, "http:", "https:", 1), 1,
			[]string{"Check --server", "speaks http, not https"},
		},
		"a node that the fleet does not have": {
			auth.Operator, "fleet drain edge-9", 1, []string{`no node "edge-9"; there are edge-1, edge-2`, "littoral fleet"},
		},
		"a setting without a value sign": {auth.Operator, "fleet set edge-1 cpu", 2, []string{`"cpu" is not KEY=VALUE`}},
		"a setting twice": {
			auth.Operator, "fleet set edge-1 cpu=1 cpu=2 =3", 2, []string{`"cpu" is given twice; "=3"`},
		},
		"an unknown command":      {auth.Operator, "frobnicate", 2, []string{"frobnicate", "littoral --help"}},
		"an unknown thing to get": {auth.Operator, "get pods", 2, []string{"pods", "littoral get --help"}},
		"an unknown flag": {
			auth.Operator, "get apps --frob", 2, []string{"--frob", "littoral get apps --help"},
		},
		"an unknown output": {
			auth.Operator, "get apps -o xml", 2, []string{"table", "wide", "json", "yaml"},
		},
		"an unknown state":         {auth.Operator, "get jobs --state Done", 2, []string{"Progressing"}},
		"a missing argument":       {auth.Operator, "start app", 2, []string{"<id>", "littoral start app --help"}},
		"a missing file":           {auth.Operator, "apply", 2, []string{"--file", "littoral apply --help"}},
		"plan without a file":      {auth.Operator, "plan", 2, []string{"--file", "littoral plan --help"}},
		"explain without anything": {auth.Operator, "explain", 2, []string{"-f FILE", "app ID"}},
		"explain of too much": {
			auth.Operator, "explain -f testdata/shop.yaml app shop", 2, []string{"-f FILE", "app ID"},
		},
		"too many events": {auth.Operator, "events --tail 5000", 2, []string{"--tail", "1000"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := h.as(t.Context(), row.role, strings.Fields(row.args)...)
			require.Equal(t, row.code, r.code, "%s%s", r.out, r.err)
			require.True(t, strings.HasPrefix(r.err, "littoral: "), "%s", r.err)
			for _, text := range row.says {
				require.Contains(t, r.err, text)
			}
		})
	}
}

func TestApplyOfAnApplicationOnItsWayOut(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	require.Equal(t, 2, h.work())
	h.ok("delete", "app", "shop", "--no-wait")
	r := h.run("apply", "-f", "testdata/shop.yaml")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "littoral wait app")
	require.Contains(t, r.err, "littoral submit")
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	address, err := loopback.Free(t.Context())
	require.NoError(t, err)
	base := "http://" + address.String()
	for name, row := range map[string]struct {
		args string
		code int
		says string
	}{
		"on this machine it can be started": {"get apps --server " + base, 1, "littoral up"},
		"plan keeps its own exit code":      {"plan -f testdata/shop.yaml --server " + base, 255, "littoral up"},
		"elsewhere the address may be wrong": {
			"get apps --server http://littoral.invalid", 1, "Check --server and LITTORAL_SERVER",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t.Context(), time.Now, nil, "", strings.Fields(row.args)...)
			require.Equal(t, row.code, r.code)
			require.Contains(t, r.err, "no server answers at http://")
			require.Contains(t, r.err, row.says)
		})
	}
}

// TestApplyAtOnce: several users who apply one descriptor at the same moment create one application.
func TestApplyAtOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	said := make([]result, 6)
	var all sync.WaitGroup
	for i := range said {
		all.Go(func() { said[i] = h.run("apply", "-f", "testdata/shop.yaml") })
	}
	all.Wait()
	created := 0
	for _, r := range said {
		require.Zero(t, r.code, r.err)
		if strings.Contains(r.out, " created: ") {
			created++
			continue
		}
		require.Contains(t, r.out, " unchanged: ")
	}
	require.Equal(t, 1, created)
}

// TestAServerThatIsNoURL: usually because the scheme is missing.
func TestAServerThatIsNoURL(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"127.0.0.1:8080", "localhost:8080", "littoral", "ftp://127.0.0.1", "http://", "http:///jobmanager", "http://a b"} {
		for _, command := range []string{"get apps", "plan -f testdata/shop.yaml"} {
			r := run(t.Context(), time.Now, map[string]string{"LITTORAL_SERVER": server}, "", strings.Fields(command)...)
			require.NotZero(t, r.code, server)
			require.Equal(t, "littoral: the server must be a URL such as http://127.0.0.1:8080, not \""+server+"\"\n"+
				"Check --server and LITTORAL_SERVER\n", r.err)
		}
	}
}

// TestAServerThatIsElsewhere: for instance behind a gateway that redirects http to https. A change that was not made
// must not be reported as done.
func TestAServerThatIsElsewhere(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/shop.yaml")
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, h.url+r.URL.String(), http.StatusMovedPermanently)
	}))
	t.Cleanup(front.Close)
	h.ok("get", "apps", "--server", front.URL)
	for _, line := range []string{"delete app shop", "stop app shop", "apply -f testdata/shop-green.yaml"} {
		r := h.run(append(strings.Fields(line), "--server", front.URL)...)
		require.Equal(t, 1, r.code, line)
		require.Contains(t, r.err, "nothing was changed", line)
		require.Contains(t, r.err, "--server "+h.url+"\n", line)
	}
	require.Contains(t, h.ok("get", "apps", "-o", "wide"), "running")
}

func TestWhereTheTokenComesFrom(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	home := t.TempDir()
	write := func(name, token string) string {
		path := filepath.Join(home, name)
		require.NoError(t, os.WriteFile(path, []byte(token+"\n"), 0o600))
		return path
	}
	viewer := h.sys.Token(auth.Viewer)
	write("token-admin", viewer)
	expired := write("expired", h.sys.Issuer.TokenWith(t, inprocess.Claims{"exp": time.Now().Add(-time.Hour).Unix()}))
	good := write("good", viewer)
	for name, row := range map[string]struct {
		env  map[string]string
		args string
		code int
		says string
	}{
		"the laptop's own, in LITTORAL_HOME": {map[string]string{"LITTORAL_HOME": home}, "", 0, ""},
		"a file that the environment names":  {map[string]string{"LITTORAL_TOKEN_FILE": good}, "", 0, ""},
		"the environment itself before that file": {
			map[string]string{"LITTORAL_TOKEN": viewer, "LITTORAL_TOKEN_FILE": expired}, "", 0, "",
		},
		"the flag before all": {
			map[string]string{"LITTORAL_TOKEN": viewer}, "--token-file " + expired, 1, "The token came from the file " + expired,
		},
		"the environment, with what an editor has put behind it": {map[string]string{"LITTORAL_TOKEN": viewer + " \r\n"}, "", 0, ""},
		"one that is no token": {
			map[string]string{"LITTORAL_TOKEN": viewer + "\n" + viewer}, "", 1, "The token came from LITTORAL_TOKEN",
		},
		"a file that is not there is named": {nil, "--token-file " + home + "/none", 1, "Name a file that exists"},
		"none at all": {
			map[string]string{"LITTORAL_HOME": home + "/none"}, "", 1, "No access token was sent",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append(strings.Fields(row.args), "get", "apps", "--server", h.url)
			r := run(t.Context(), time.Now, row.env, "", args...)
			require.Equal(t, row.code, r.code, "%s", r.err)
			require.Contains(t, r.err, row.says)
		})
	}
}

func TestAnInterruptionIsSaid(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ok("apply", "-f", "testdata/huge.yaml")
	ctx, cancel := context.WithCancel(t.Context())
	h.at(3, cancel)
	r := h.as(ctx, auth.Operator, "wait", "app", "huge")
	require.Equal(t, 130, r.code)
	require.Contains(t, r.err, "interrupted")
}

// TestWhatAServerSaysCannotCommandATerminal: wherever it is in an error.
func TestWhatAServerSaysCannotCommandATerminal(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"type":"https://littoral.dev/problems/internal","detail":"a\u001b[2J","traceId":"b\u001b[2J",`+
			`"errors":[{"path":"c\u001b[2J","detail":"d\u001b[2J"}]}`)
	}))
	t.Cleanup(server.Close)
	r := run(t.Context(), time.Now, map[string]string{"LITTORAL_SERVER": server.URL}, "", "get", "apps")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "trace id b")
	require.NotContains(t, r.err, "\x1b")
}

// TestAnInterruptionEndsATypedDescriptor: otherwise the terminal would wait for the rest of it.
func TestAnInterruptionEndsATypedDescriptor(t *testing.T) {
	t.Parallel()
	for command, code := range map[string]int{"apply": 130, "plan": 255, "explain": 130} {
		terminal, keys := io.Pipe()
		t.Cleanup(func() { require.NoError(t, keys.Close()) })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var errs bytes.Buffer
		sh := cli.Shell{Stdin: terminal, Stdout: io.Discard, Stderr: &errs, Getenv: func(string) string { return "" }}
		require.Equal(t, code, sh.Run(ctx, []string{command, "-f", "-"}))
		require.Contains(t, errs.String(), "interrupted")
	}
}

func TestNamesBelowLocalhostAreThisMachine(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	_, port, ok := strings.Cut(h.url, "127.0.0.1:")
	require.True(t, ok, h.url)
	r := h.as(t.Context(), auth.Operator, "get", "apps", "--server", "http://littoral.lab.localhost:"+port)
	require.Zero(t, r.code, r.err)
}
