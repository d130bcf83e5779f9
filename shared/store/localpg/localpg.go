// Package localpg runs a real Postgres on this machine, for the laptop host and for tests.
//
// The server is found on the machine, else installed, else downloaded (see find.go). It listens only on a Unix socket
// in its private data directory, so file permissions are its access control and it occupies no port. It never runs as
// root. On Linux it never outlives its parent: the kernel stops it when the parent dies, even from kill -9.
package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// User is the superuser of every server that this package starts.
const User = "littoral"

// Options define where and how a server runs.
type Options struct {
	Dir      string            // data directory; created if missing
	Durable  bool              // false turns fsync off: the data survives a crash of Postgres, but not of the machine
	Log      io.Writer         // the server's own log; nil = discarded
	Notice   func(text string) // called before anything slow, such as an installation; may be nil
	Settings map[string]string // further postgresql.conf settings
}

// Server is a running Postgres.
type Server struct {
	options Options
	bin     string // directory of initdb and postgres
	dir     string // real path of the data, absolute
	socket  string // directory of the Unix socket
	as      account
	lock    *os.File
	process *process
}

// startTimeout limits a start including crash recovery.
const startTimeout = 2 * time.Minute

// Start starts the server of o.Dir. A server that an earlier process left running there is stopped first; a directory
// that a living process uses is an error.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	s := &Server{options: o}
	if err := s.prepare(ctx); err != nil {
		s.release()
		return nil, fmt.Errorf("local Postgres: %w", err)
	}
	if err := s.launch(ctx); err != nil {
		s.release()
		return nil, fmt.Errorf("local Postgres: %w", err)
	}
	return s, nil
}

// prepare makes sure that the data directory is locked, used by no other server, initialised, and owned by the account.
func (s *Server) prepare(ctx context.Context) error {
	link, err := filepath.Abs(s.options.Dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return err
	}
	if s.lock, err = Lock(link + ".lock"); err != nil {
		return err
	}
	// Before choosing the account, since an installation of Postgres may create its own.
	if s.bin, err = binaries(ctx, majorOf(link), s.options.Notice); err != nil {
		return err
	}
	if s.as, err = runAs(link); err != nil {
		return err
	}
	if s.dir, err = s.as.createDataDir(link); err != nil {
		return err
	}
	if s.socket, err = s.as.socketDir(s.dir); err != nil {
		return err
	}
	if err := stopLeftover(ctx, s.dir); err != nil {
		return err
	}
	return s.initialise(ctx)
}

// URL returns the URL of a database of the server; it does not create it.
func (s *Server) URL(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(User), Path: "/" + database}
	query := url.Values{"host": {s.socket}, "sslmode": {"disable"}}.Encode()
	u.RawQuery = strings.ReplaceAll(query, "+", "%20") // Postgres and pgx do not decode a plus
	return u.String()
}

// EnsureDatabase creates the database unless it exists.
func (s *Server) EnsureDatabase(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return fmt.Errorf("local Postgres: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	const isThere = `select exists (select from pg_database where datname = $1)`
	var exists bool
	if err := conn.QueryRow(ctx, isThere, name).Scan(&exists); err != nil {
		return fmt.Errorf("local Postgres: %w", err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, `create database `+pgx.Identifier{name}.Sanitize()); err != nil {
		return fmt.Errorf("local Postgres: %w", err)
	}
	return nil
}

// Done is closed when the running server has ended, whether it was stopped or not. Restart replaces the channel.
func (s *Server) Done() <-chan struct{} { return s.process.done }

// Stop ends the server: open connections are closed, everything committed is on disk. Stopping twice is harmless.
func (s *Server) Stop() error {
	err := s.process.stop()
	s.release()
	return err
}

// Kill ends the server like a crash and keeps its data for Restart.
func (s *Server) Kill() { s.process.kill() }

// Restart stops the server if it still runs and starts it again at the same address.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.process.stop(); err != nil {
		return err
	}
	if err := s.launch(ctx); err != nil {
		return fmt.Errorf("local Postgres: %w", err)
	}
	return nil
}

func (s *Server) release() {
	if s.lock != nil {
		_ = Unlock(s.lock)
		s.lock = nil
	}
	if s.socket != "" && s.socket != s.dir {
		_ = os.RemoveAll(s.socket)
	}
}

// waitReady returns when the server answers a query, or an error if it does not.
func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for pause := 2 * time.Millisecond; ; pause = min(pause*2, 100*time.Millisecond) {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		if lacks(err) {
			return halfMade(s.dir, err)
		}
		select {
		case <-s.process.done:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("does not answer: %w", err)
		case <-time.After(pause):
		}
	}
}

var errEnded = errors.New("the server ended while starting")

// lacks reports whether a running server refuses connections because its data lacks something that initdb creates.
// Temporary refusals do not count: while it starts or stops (class 57), or lacks resources (class 53).
func lacks(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && !strings.HasPrefix(refused.Code, "57") && !strings.HasPrefix(refused.Code, "53")
}

// halfMade explains what to do about a data directory whose creation may have been interrupted in an earlier start.
func halfMade(dir string, cause error) error {
	return fmt.Errorf("%[1]s is not whole (%[2]w), as it is after a first start that was interrupted; "+
		"if there is nothing in it that you need, remove it and start again: rm -r %[1]s", dir, cause)
}
