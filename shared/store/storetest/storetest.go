// Package storetest gives each test a migrated Postgres database of its own, cloned from a template in a few
// milliseconds.
//
// A package that uses it needs
//
//	func TestMain(m *testing.M) { storetest.Main(m) }
//
// which ends the server after the last test. The server starts with the first test that asks for it; when
// LITTORAL_TEST_DATABASE_URL is set (scripts/with-postgres sets it), that one serves all packages instead.
package storetest

import (
	"context"
	"fmt"
	"log"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/localpg"
)

// EnvURL names a server to use instead of starting one: the URL of a database from which others may be created.
const EnvURL = "LITTORAL_TEST_DATABASE_URL"

var (
	mainRuns atomic.Bool
	once     sync.Once
	started  server
)

// server is the one Postgres of this test process.
type server struct {
	url      string // of its maintenance database
	template string
	stop     func()
	err      error
}

// Main runs the tests, ends the server they used, tidies what else was made for all of them and exits. Locks that were taken out of
// LockOrder on a DB of this package make it fail.
func Main(m *testing.M, tidy ...func() error) {
	mainRuns.Store(true)
	code := m.Run()
	if started.stop != nil {
		started.stop()
	}
	for _, f := range append(tidy, watch.outOfOrder) {
		if err := f(); err != nil {
			log.Print(err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// New returns a DB on a fresh migrated database whose published events Published lists.
func New(t testing.TB) *store.DB {
	t.Helper()
	return NewWithPublisher(t, &Recorder{})
}

// connections is enough for tests that race a handful of transactions.
const connections = 10

// NewWithPublisher returns a DB on a fresh migrated database that publishes to p.
func NewWithPublisher(t testing.TB, p events.Publisher) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), store.Config{DatabaseURL: URL(t), MaxConns: connections}, p, Tracer())
	require.NoError(t, err)
	t.Cleanup(db.Close)
	if r, ok := p.(*Recorder); ok {
		recorders.Store(db, r)
		t.Cleanup(func() { recorders.Delete(db) })
	}
	return db
}

// made begins the names of databases that URL has made.
const made = "test_"

// URL returns the address of a fresh migrated database, which is dropped after the test.
func URL(t testing.TB) string {
	t.Helper()
	if !mainRuns.Load() {
		t.Fatal("storetest: this package needs: func TestMain(m *testing.M) { storetest.Main(m) }")
	}
	once.Do(func() { started = begin(context.Background()) })
	require.NoError(t, started.err)
	name := made + uuid.NewString()
	maintain(t, "create database %s template %s", name, started.template)
	t.Cleanup(func() { maintain(t, "drop database %s with (force)", name) })
	return within(started.url, name)
}

// maintain runs a statement on the maintenance database; its arguments are identifiers.
func maintain(t testing.TB, format string, names ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	quoted := make([]any, len(names))
	for i, n := range names {
		quoted[i] = pgx.Identifier{n}.Sanitize()
	}
	conn, err := pgx.Connect(ctx, started.url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, fmt.Sprintf(format, quoted...))
	require.NoError(t, err)
}

func within(server, database string) string {
	u, err := url.Parse(server)
	if err != nil {
		panic(err) // it has been dialled before
	}
	u.Path = "/" + database
	return u.String()
}

func begin(ctx context.Context) server {
	s := server{url: os.Getenv(EnvURL)}
	if s.url == "" {
		s.url, s.stop, s.err = Start(ctx)
	}
	if s.err == nil {
		s.template, s.err = template(ctx, s.url)
	}
	return s
}

// scratchPattern names the directories of test servers; a killed test leaves one behind.
const scratchPattern = "littoral-testpg-"

// Postgres makes a file for each table and index of each database, hundreds for each test. In memory that takes a tenth of the time
// that it takes on a disk.
const (
	inMemory  = "/dev/shm" // on Linux
	spaceLeft = 4 << 30    // bytes that have to be free there
)

// scratch is where test servers keep their data: in memory if there is plenty, else where temporary files go.
func scratch() string {
	var there syscall.Statfs_t
	if syscall.Statfs(inMemory, &there) != nil || there.Bavail*uint64(there.Bsize) < spaceLeft || available() < 2*spaceLeft {
		return os.TempDir()
	}
	return inMemory
}

// available returns the bytes of memory that Linux could still give away; 0 elsewhere.
func available() uint64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kilobytes uint64
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kilobytes); err == nil {
			return kilobytes << 10
		}
	}
	return 0
}

// Start runs a server for tests in a scratch directory. It returns the address of its maintenance database and how to
// stop it and remove its data.
func Start(ctx context.Context) (databaseURL string, stop func(), err error) {
	removeAbandoned()
	dir, err := os.MkdirTemp(scratch(), scratchPattern)
	if err != nil {
		return "", nil, err
	}
	// The server may run as another user, who has to get to its data directory in here.
	if err := os.Chmod(dir, 0o755); err != nil { // holds a directory that is private itself
		return "", nil, err
	}
	s, err := localpg.Start(ctx, localpg.Options{
		Dir:    filepath.Join(dir, "pg"),
		Notice: func(text string) { fmt.Fprintln(os.Stderr, text) },
	})
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", nil, err
	}
	return s.URL("postgres"), func() {
		if err := s.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		_ = os.RemoveAll(dir)
	}, nil
}

// removeAbandoned clears away what killed tests left: directories whose lock nobody holds any more.
func removeAbandoned() {
	var dirs []string
	for _, place := range []string{os.TempDir(), inMemory} {
		found, _ := filepath.Glob(filepath.Join(place, scratchPattern+"*"))
		dirs = append(dirs, found...)
	}
	for _, dir := range dirs {
		lock, err := os.Open(filepath.Join(dir, "pg.lock"))
		if err != nil {
			continue // just being made
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = lock.Close()
	}
}
