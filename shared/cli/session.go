package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/loopback"
)

// DefaultServer is where "littoral up" serves.
const DefaultServer = "http://127.0.0.1:8080"

// session prepares what a command works with; nothing is dialled.
func (sh *Shell) session(ctx context.Context, server, tokenFile, named string) (*session, error) {
	s := &session{
		ctx: ctx, in: sh.Stdin, out: sh.Stdout, err: sh.Stderr, now: sh.Now, poll: sh.Poll, getenv: sh.Getenv,
		exec: sh.Exec, open: sh.Open, edit: sh.Edit, server: server, tokenFile: tokenFile,
	}
	if s.open == nil {
		s.open = openBrowser
	}
	if s.edit == nil {
		s.edit = sh.runEditor
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.poll == 0 {
		s.poll = DefaultPoll
	}
	if s.exec == nil {
		s.exec = become
	}
	s.display = displayOf(sh.Stdout, sh.Getenv)
	s.screen = newScreen(sh.Stdout, s.display)
	chosen, err := s.context(server, named)
	if err != nil {
		return s, err
	}
	if chosen != nil {
		s.named = chosen.Name
		server, tokenFile = chosen.address(), cmp.Or(tokenFile, chosen.tokens())
	}
	s.client = &api.Client{Base: cmp.Or(server, sh.Getenv("LITTORAL_SERVER"), s.hostAddress(), DefaultServer), HTTP: sh.HTTP}
	if s.client.HTTP == nil {
		s.client.HTTP = &http.Client{Transport: transport()}
	}
	s.client.Token, s.token = s.tokenSource(tokenFile)
	return s, nil
}

// home is where "littoral up" keeps its state.
func (s *session) home() string { return cmp.Or(s.getenv("LITTORAL_HOME"), ".littoral") }

// hostAddress is where the host that uses the home serves; "" if none runs.
func (s *session) hostAddress() string { return addressIn(s.home()) }

func addressIn(home string) string {
	text, err := os.ReadFile(filepath.Join(home, api.AddressFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// transport is the default transport, except that names below localhost lead to this machine.
func transport() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dial(ctx, network, loopback.Address(address))
	}
	return t
}

// tokenSource finds the access token by the rule that the help states. The laptop's own token goes to a server on this
// machine only: it must not leak to whatever --server names.
func (s *session) tokenSource(file string) (source func() (string, error), from string) {
	if file != "" {
		return api.TokenFile(file), "the file " + file
	}
	if token := s.getenv("LITTORAL_TOKEN"); token != "" {
		return api.StaticToken(token), "LITTORAL_TOKEN"
	}
	if file := s.getenv("LITTORAL_TOKEN_FILE"); file != "" {
		return api.TokenFile(file), "the file " + file
	}
	if source := s.loginSource(); source != nil {
		return source, `"littoral login" (` + s.logins().Where(s.client.Base) + ")"
	}
	if own := filepath.Join(s.home(), "token-admin"); local(s.client.Base) {
		if _, err := os.Stat(own); err == nil {
			return api.TokenFile(own), "the file " + own
		}
	}
	return nil, ""
}

// local reports whether the server is on this machine.
func local(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback()
}

// maxDocument bounds what is read of a descriptor; the server takes 1 MiB and says so itself.
const maxDocument = 8 << 20

// document reads a descriptor from a file, or from standard input for "-".
func (s *session) document(file string) ([]byte, error) {
	from, read := file, func() ([]byte, error) { return os.ReadFile(file) }
	if file == "-" {
		from, read = "standard input", s.typed
	}
	text, err := read()
	if err != nil {
		return nil, fmt.Errorf("the descriptor cannot be read: %w", err)
	}
	if len(text) == 0 {
		return nil, fmt.Errorf("the descriptor is empty: there is nothing in %s", from)
	}
	return text, nil
}

// typed reads standard input to its end. A read from a terminal cannot be cancelled, so after an interruption it is
// abandoned.
func (s *session) typed() ([]byte, error) {
	type answer struct {
		text []byte
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(s.in, maxDocument))
		done <- answer{text, err}
	}()
	select {
	case a := <-done:
		return a.text, a.err
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

// wait pauses for one poll.
func (s *session) wait(ctx context.Context) error {
	timer := time.NewTimer(s.poll)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
