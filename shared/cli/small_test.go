package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
)

func TestAges(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0s": -time.Hour, "119s": 119 * time.Second, "2m": 2 * time.Minute, "9m59s": 10*time.Minute - time.Second,
		"179m": 179 * time.Minute,
		"3h":   3 * time.Hour, "7h59m": 8*time.Hour - time.Minute, "47h": 47 * time.Hour, "2d": 48 * time.Hour,
		"7d23h": 191 * time.Hour,
		"8d":    8 * 24 * time.Hour, "400d": 400 * 24 * time.Hour,
	} {
		require.Equal(t, want, span(d))
	}
}

func TestBytesText(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]float64{
		"0B": 0, "1023B": 1023, "1Ki": 1024, "1.5Mi": 1.5 * (1 << 20), "8Gi": 8 << 30, "2048Ti": 1 << 51,
	} {
		require.Equal(t, want, bytesText(&n))
	}
	require.Equal(t, "?", bytesText(nil))
}

func TestTheLiveLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newScreen(&out, display{live: true})
	p.status(bar(1, 2, "Deploying", 3*time.Second))
	p.line("placed web")
	p.status(strings.Repeat("x", 200))
	p.clear()
	p.clear()
	require.Equal(t, "\r\x1b[K/ [==========>         ] 1/2 Deploying 3s"+"\r\x1b[K"+"placed web\n"+
		"\r\x1b[K- "+strings.Repeat("x", 75)+"...\r\x1b[K", out.String())

	out.Reset()
	p = newScreen(&out, display{})
	p.status("x")
	p.line("placed web")
	p.clear()
	require.Equal(t, "placed web\n", out.String(), "no terminal, no escapes")
}

func TestBars(t *testing.T) {
	t.Parallel()
	require.Equal(t, "[>                   ] 0/0 Pending 0s", bar(0, 0, "Pending", 0))
	require.Equal(t, "[====================] 2/2 Available 1s", bar(2, 2, "Available", time.Second))
}

func TestOnlyThisMachineGetsTheLaptopsToken(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(home, "token-admin"), []byte("secret"), 0o600))
	sh := Shell{Stdout: &bytes.Buffer{}, Getenv: func(key string) string {
		return map[string]string{"LITTORAL_HOME": home}[key]
	}}
	for server, sent := range map[string]bool{
		"": true, "http://127.0.0.1:9": true, "http://localhost:8080/": true, "http://[::1]:8080": true,
		"http://10.0.0.1:8080": false, "https://littoral.example": false, "http://127.0.0.1.example": false, "::": false,
	} {
		s, err := sh.session(context.Background(), server, "", "")
		require.NoError(t, err)
		require.Equal(t, sent, s.client.Token != nil, server)
	}
}

func TestUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), host)
	require.NoError(t, os.WriteFile(path, nil, 0o700))
	t.Setenv("PATH", filepath.Dir(path))
	var became string
	var args []string
	var errs bytes.Buffer
	sh := Shell{
		Stdout: &bytes.Buffer{}, Stderr: &errs, Getenv: os.Getenv,
		Exec: func(path string, argv, _ []string) error { became, args = path, argv; return nil },
	}
	require.Zero(t, sh.Run(t.Context(), []string{"up", "--fleet", "none", "--apply", "a.yaml", "--help"}))
	require.Equal(t, path, became)
	require.Equal(t, []string{"littoral-up", "--fleet", "none", "--apply", "a.yaml", "--help"}, args)

	t.Setenv("PATH", "")
	require.Equal(t, 1, sh.Run(t.Context(), []string{"up"}))
	require.Contains(t, errs.String(), "make build")
}

func TestHelp(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	sh := Shell{Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }}
	require.Zero(t, sh.Run(t.Context(), nil), "no arguments ask for help")
	require.Contains(t, out.String(), "Exit codes:")
	require.Zero(t, sh.Run(t.Context(), []string{"fleet", "set", "--help"}))
	for _, key := range []string{"device:PATH", "label:KEY", "telemetry", "compss:TASK", "event:NAME", "pull-error"} {
		require.Contains(t, out.String(), key)
	}
	for asked, flag := range map[string]string{"help": "--help", "help fleet set": "fleet set --help"} {
		var other bytes.Buffer
		out.Reset()
		sh.Stdout = &out
		require.Zero(t, sh.Run(t.Context(), strings.Fields(asked)), asked)
		sh.Stdout = &other
		require.Zero(t, sh.Run(t.Context(), strings.Fields(flag)))
		require.Equal(t, other.String(), out.String(), asked)
	}
}

func TestFleetRow_saysWhoIsHeard(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]struct {
		cluster api.FleetCluster
		node    api.FleetNode
	}{
		"up":          {},
		"cut off":     {cluster: api.FleetCluster{Cut: true}, node: api.FleetNode{Silent: true}},
		"drained":     {node: api.FleetNode{Drained: true, Silent: true}},
		"silent":      {node: api.FleetNode{Silent: true, Tells: "none"}},
		"half silent": {node: api.FleetNode{Tells: "node"}},
	} {
		require.Equal(t, want, fleetRow(&of.cluster, &of.node)[2])
	}
}

func TestFleetRow_saysWhoseComponentsRun(t *testing.T) {
	t.Parallel()
	copies := []api.FleetCopy{
		{Application: "shop", Component: "web"}, {Application: "blog", Component: "web"}, {Application: "shop", Component: "web"},
	}
	row := fleetRow(&api.FleetCluster{}, &api.FleetNode{Copies: copies})
	require.Equal(t, "blog/web,shop/web", row[len(row)-1])
}

// TestTheCommandLineIsLight: it only talks to a server, so it must not contain what only a server needs.
func TestTheCommandLineIsLight(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}",
		"../../scripts/littoral")
	out, err := cmd.Output()
	require.NoError(t, err)
	allowed := []string{
		"github.com/alecthomas/kong", "sigs.k8s.io/yaml", "go.yaml.in/yaml/v2", "go.yaml.in/yaml/v3",
		"github.com/littoral-project/littoral/scripts/littoral",
		"github.com/littoral-project/littoral/shared/api",
		"github.com/littoral-project/littoral/shared/appmodel",        // what a descriptor is read into
		"github.com/littoral-project/littoral/shared/compose/reading", // of compose files in a descriptor, which nobody reads here
		"github.com/littoral-project/littoral/shared/descriptor",
		"github.com/littoral-project/littoral/shared/durable",          // keeps the tokens of login
		"github.com/littoral-project/littoral/shared/history/recorded", // what history records
		"github.com/littoral-project/littoral/shared/label",            // which labels a descriptor may name
		"github.com/littoral-project/littoral/shared/loopback",
		"github.com/littoral-project/littoral/shared/sse",     // streams of logs
		"github.com/littoral-project/littoral/shared/network", // what channels run over, a part of a plan
		"github.com/littoral-project/littoral/shared/placement",
		"github.com/littoral-project/littoral/shared/problem",
		"github.com/littoral-project/littoral/shared/generator", "github.com/google/uuid", // makes up worlds, without a server
		"github.com/littoral-project/littoral/shared/cli",
		"github.com/littoral-project/littoral/shared/signin", "golang.org/x/oauth2",
		"github.com/zalando/go-keyring", "github.com/godbus/dbus/v5", // keeps them where the desktop has one
		"golang.org/x/term", "github.com/fatih/color", // what a terminal can show, with what they stand on
		"golang.org/x/sys", "github.com/mattn/go-colorable", "github.com/mattn/go-isatty",
	}
	for pkg := range strings.FieldsSeq(string(out)) {
		ok := false
		for _, prefix := range allowed {
			ok = ok || pkg == prefix || strings.HasPrefix(pkg, prefix+"/")
		}
		require.True(t, ok, "littoral has come to import %s", pkg)
	}
}

func FuzzSettings(f *testing.F) {
	f.Add("cpu=1", "sca=")
	f.Add("=", "a=b=c")
	f.Fuzz(func(t *testing.T, a, b string) {
		settings, err := parseSettings([]string{a, b})
		if err != nil {
			require.Nil(t, settings)
			return
		}
		require.Len(t, settings, 2)
		for key, value := range settings {
			require.NotEmpty(t, key)
			require.Contains(t, []string{a, b}, key+"="+value)
		}
	})
}

func FuzzIDs(f *testing.F) {
	f.Add("0198c2ab-1234-7000-8000-000000000001")
	f.Add("0198")
	f.Add("beef-")
	f.Fuzz(func(t *testing.T, text string) {
		if !isIDPrefix(text) {
			return
		}
		require.GreaterOrEqual(t, len(text), minPrefix)
		require.LessOrEqual(t, len(text), idLength)
		const whole = "00000000-0000-0000-0000-000000000000"
		require.Equal(t, strings.Count(whole[:len(text)], "-"), strings.Count(text, "-"))
	})
}

func FuzzPrintable(f *testing.F) {
	f.Add("a\x1b[31mb\n\xff")
	f.Fuzz(func(t *testing.T, text string) {
		out := printable(text)
		require.Equal(t, out, printable(out))
		require.False(t, strings.ContainsAny(out, "\x1b\n\r\t\x00"))
	})
}
