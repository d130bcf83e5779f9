package login_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/shared/cli"
	"github.com/littoral-project/littoral/shared/signin"
)

// terminal is the command line of somebody with a home of his own.
type terminal struct {
	t    *testing.T
	s    *system
	env  map[string]string
	open func(address string) // the desktop's browser; nil = there is none
}

func newTerminal(t *testing.T, s *system) *terminal {
	t.Helper()
	return &terminal{t: t, s: s, env: map[string]string{"XDG_CONFIG_HOME": t.TempDir(), "LITTORAL_SERVER": s.URL, "LITTORAL_HOME": t.TempDir()}}
}

func (m *terminal) file() signin.File {
	return signin.File{Path: filepath.Join(m.env["XDG_CONFIG_HOME"], "littoral", "logins.json")}
}

// addressIn is the first address that is printed.
var addressIn = regexp.MustCompile(`https?://\S+`)

// watched calls seen with the first address that is written.
type watched struct {
	bytes.Buffer

	mu   sync.Mutex
	seen func(address string)
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.Buffer.Write(p)
	if address := addressIn.FindString(w.String()); address != "" && w.seen != nil {
		go w.seen(address)
		w.seen = nil
	}
	return n, err
}

// run runs a command; seen is called with the first address that it tells the person.
func (m *terminal) run(seen func(address string), args ...string) (code int, out, errs string) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	var stdout bytes.Buffer
	stderr := &watched{seen: seen}
	sh := cli.Shell{
		Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: stderr, Getenv: func(k string) string { return m.env[k] },
		Open: func(_ context.Context, address string) error {
			if m.open == nil {
				return os.ErrNotExist
			}
			m.open(address)
			return nil
		},
	}
	code = sh.Run(ctx, args)
	stderr.mu.Lock()
	defer stderr.mu.Unlock()
	return code, stdout.String(), stderr.String()
}

// allow lets a device in as a person does, at either issuer.
func (m *terminal) allow(user string) func(address string) {
	return func(address string) {
		b := newBrowser(m.t, m.s.URL)
		page, text := b.do(http.MethodGet, address, nil)
		if m.s.endsToo { // the laptop's asks for all at once
			answer, text := b.fill(page, text, map[string]string{
				"username": user, "password": m.s.passwords[user], "answer": "allow",
			})
			require.Equal(m.t, http.StatusOK, answer.StatusCode, text)
			return
		}
		page, text = b.fill(page, text, nil) // the code is in the address already
		page, text = b.password(m.s, page, text, user)
		require.Equal(m.t, http.StatusOK, page.StatusCode, text)
	}
}

func TestTheCommandLineSignsInByADevice(t *testing.T) {
	everywhere(t, func(t *testing.T, s *system) {
		m := newTerminal(t, s)
		code, _, errs := m.run(nil, "whoami")
		require.Equal(t, 1, code)
		require.Contains(t, errs, "littoral login")

		code, out, errs := m.run(m.allow("operator"), "login")
		require.Zero(t, code, errs)
		require.Equal(t, "Signed in as operator (operator).\n", out)
		info, err := os.Stat(m.file().Path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

		code, out, errs = m.run(nil, "whoami")
		require.Zero(t, code, errs)
		for _, want := range []string{"operator (operator)", "until ", "littoral login", "at " + s.provider.url} {
			require.Contains(t, out, want)
		}
		code, _, errs = m.run(nil, "get", "apps")
		require.Zero(t, code, errs)

		// A token that is over is renewed before anybody notices.
		l, err := m.file().Get(s.URL)
		require.NoError(t, err)
		l.Access, l.Expires = "over", time.Now().Add(-time.Minute)
		require.NoError(t, m.file().Set(s.URL, l))
		code, out, errs = m.run(nil, "whoami", "-o", "json")
		require.Zero(t, code, errs)
		require.Contains(t, out, `"subject"`)
		renewed, err := m.file().Get(s.URL)
		require.NoError(t, err)
		require.NotEqual(t, "over", renewed.Access)

		code, out, errs = m.run(nil, "logout")
		require.Zero(t, code, errs)
		require.Contains(t, out, "Signed out")
		code, _, _ = m.run(nil, "whoami")
		require.Equal(t, 1, code)
		if s.endsToo { // dex 2.45 revokes no refresh tokens of devices
			renewed.Expires = time.Now().Add(-time.Minute)
			require.NoError(t, m.file().Set(s.URL, renewed))
			code, _, errs = m.run(nil, "get", "apps")
			require.Equal(t, 1, code)
			require.Contains(t, errs, "littoral login", "the issuer was told")
		}
	})
}

func TestTheCommandLineSignsInByABrowser(t *testing.T) {
	everywhere(t, func(t *testing.T, s *system) {
		m := newTerminal(t, s)
		m.open = func(address string) {
			go func() {
				b := newBrowser(t, s.URL)
				page, text := b.do(http.MethodGet, address, nil)
				page, text = b.password(s, page, text, "viewer")
				require.Contains(t, text, "You are signed in")
				require.Equal(t, "127.0.0.1", page.Request.URL.Hostname())
			}()
		}
		code, out, errs := m.run(nil, "login", "--browser")
		require.Zero(t, code, errs)
		require.Equal(t, "Signed in as viewer (viewer).\n", out)
		code, _, errs = m.run(nil, "get", "apps")
		require.Zero(t, code, errs)
	})
}

// TestTheCommandLineSignsInAsAMachine: dex knows no client credentials.
func TestTheCommandLineSignsInAsAMachine(t *testing.T) {
	t.Parallel()
	var dir string
	s := start(t, func(t *testing.T, base string) provider {
		p := laptop(t, base)
		dir = p.settings["DIR"]
		return p
	})
	i, err := issuer.New(issuer.Options{URL: s.provider.url, Dir: dir, Clients: issuer.People()}) // the same key
	require.NoError(t, err)
	m := newTerminal(t, s)
	code, _, errs := m.run(nil, "login", "--client-credentials")
	require.Equal(t, 2, code, errs)
	require.Contains(t, errs, "LITTORAL_CLIENT_SECRET")
	m.env["LITTORAL_CLIENT_ID"], m.env["LITTORAL_CLIENT_SECRET"] = "operator", i.Credentials("operator").ClientSecret
	code, out, errs := m.run(nil, "login", "--client-credentials")
	require.Zero(t, code, errs)
	require.Equal(t, "Signed in as operator (operator).\n", out)

	l, err := m.file().Get(s.URL)
	require.NoError(t, err)
	l.Access, l.Expires = "over", time.Now().Add(-time.Minute)
	require.NoError(t, m.file().Set(s.URL, l))
	m.env["LITTORAL_CLIENT_SECRET"] = "" // it is kept beside the token
	code, _, errs = m.run(nil, "get", "apps")
	require.Zero(t, code, errs)
}

// TestARefusedDevice: the person says no.
func TestARefusedDevice(t *testing.T) {
	t.Parallel()
	s := start(t, laptop)
	m := newTerminal(t, s)
	code, out, errs := m.run(func(address string) {
		b := newBrowser(t, s.URL)
		page, text := b.do(http.MethodGet, address, nil)
		b.fill(page, text, map[string]string{"username": "admin", "password": s.passwords["admin"], "answer": "refuse"})
	}, "login")
	require.Equal(t, 1, code, out)
	require.Contains(t, errs, "access_denied")
	_, err := os.Stat(m.file().Path)
	require.ErrorIs(t, err, os.ErrNotExist)
}
