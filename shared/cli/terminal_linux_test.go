package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/littoral-project/littoral/shared/cli"
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
	tr := runExamples(t, onTerminal(t, 80), func(path, line, text string) {
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
