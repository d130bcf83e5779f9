package localpg_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store/localpg"
)

// childDir, if set, makes this test binary a process that starts a server there and waits to be killed.
const childDir = "LOCALPG_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		server, err := localpg.Start(context.Background(), localpg.Options{Dir: dir})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(server.URL("postgres"))
		select {}
	}
	os.Exit(m.Run())
}

// dir returns a directory that the server's account can reach; t.TempDir is accessible only to us.
func dir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("", "localpg-test-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(d, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(d)) })
	return filepath.Join(d, "data")
}

func start(t *testing.T, d string) *localpg.Server {
	t.Helper()
	server, err := localpg.Start(t.Context(), localpg.Options{Dir: d})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server
}

func exec1(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
}

func TestDataSurvivesARestartAndACrash(t *testing.T) {
	t.Parallel()
	server := start(t, dir(t))
	require.NoError(t, server.EnsureDatabase(t.Context(), "app"))
	require.NoError(t, server.EnsureDatabase(t.Context(), "app"), "a second time changes nothing")
	url := server.URL("app")
	exec1(t, url, `create table kept (n int)`)

	require.NoError(t, server.Restart(t.Context()))
	exec1(t, url, `insert into kept values (1)`)

	server.Kill()
	<-server.Done()
	require.NoError(t, server.Restart(t.Context()))
	exec1(t, url, `select 1 / n from kept`)
}

func TestAFirstStartThatIsInterrupted(t *testing.T) {
	t.Parallel()
	d := dir(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() {
		_, err := localpg.Start(ctx, localpg.Options{Dir: d})
		ended <- err
	}()
	require.Eventually(t, func() bool {
		begun, _ := filepath.Glob(d + "*/PG_VERSION")
		return len(begun) > 0
	}, time.Minute, time.Millisecond)
	interrupt()
	require.Error(t, <-ended)
	server := start(t, d)
	exec1(t, server.URL("postgres"), `create table kept (n int)`)
	left, err := filepath.Glob(d + ".*")
	require.NoError(t, err)
	require.Equal(t, []string{d + ".lock"}, left)
}

// TestADirectoryThatIsNotWhole: the error names such a directory, which an interrupted start of an earlier version
// could leave.
func TestADirectoryThatIsNotWhole(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, d, url string){
		"with nothing but its outline": func(t *testing.T, d, _ string) {
			require.NoError(t, os.Remove(filepath.Join(d, "global", "pg_control")))
		},
		"without its last database": func(t *testing.T, _, url string) {
			exec1(t, url, `drop database postgres`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := dir(t)
			server := start(t, d)
			defer func() { require.NoError(t, server.Stop()) }()
			spoil(t, d, server.URL("template1"))
			require.NoError(t, server.Stop())
			_, err := localpg.Start(t.Context(), localpg.Options{Dir: d})
			require.ErrorContains(t, err, "rm -r "+d)
		})
	}
}

func TestADirectoryInUseIsRefused(t *testing.T) {
	t.Parallel()
	d := dir(t)
	start(t, d)
	_, err := localpg.Start(t.Context(), localpg.Options{Dir: d})
	require.ErrorContains(t, err, "used by another process")
}

func TestTheServerEndsWithItsKilledParent(t *testing.T) {
	t.Parallel()
	d := dir(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+d)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	url, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	url = strings.TrimSpace(url)
	exec1(t, url, `create table kept (n int)`)
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()

	// Immediately, while the old server may still be shutting down.
	server := start(t, d)
	exec1(t, server.URL("postgres"), `select n from kept`)
}

func TestAStalePIDFileOfAnotherProcessIsNoHindrance(t *testing.T) {
	t.Parallel()
	d := dir(t)
	server := start(t, d)
	server.Kill()
	require.NoError(t, server.Stop())
	file := filepath.Join(d, "postmaster.pid")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "\n")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "%d\n%s", os.Getpid(), rest), 0o600))
	start(t, d)
}

// TestStartedOn: without /proc, this is how a server left running is recognized.
func TestStartedOn(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ps"); err != nil {
		t.Skip("needs ps")
	}
	d := dir(t)
	start(t, d)
	text, err := os.ReadFile(filepath.Join(d, "postmaster.pid"))
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	require.NoError(t, err)
	require.True(t, localpg.StartedOn(pid, d))
	alias := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.Symlink(d, alias))
	require.True(t, localpg.StartedOn(pid, alias), "the same directory by another name")
	require.False(t, localpg.StartedOn(pid, t.TempDir()), "a server, but of another directory")
	require.False(t, localpg.StartedOn(os.Getpid(), d), "a process that is no server")
	require.False(t, localpg.StartedOn(-pid, d))
}

func TestADirectoryOnlyRootCanEnter(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root has directories that its server's account cannot enter")
	}
	d := dir(t)
	require.NoError(t, os.Chmod(filepath.Dir(d), 0o700))
	server := start(t, d)
	exec1(t, server.URL("postgres"), `create table kept (n int)`)
	require.NoError(t, server.Stop())
	target, err := os.Readlink(d)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(target)) })

	server = start(t, d)
	exec1(t, server.URL("postgres"), `select n from kept`)
}

func TestAPathMayHoldWhatAnAddressEscapes(t *testing.T) {
	t.Parallel()
	server := start(t, filepath.Join(dir(t), "a+b c%20d&e"))
	exec1(t, server.URL("postgres"), `select 1`)
}

func TestALongPathStillGetsASocket(t *testing.T) {
	t.Parallel()
	server := start(t, filepath.Join(dir(t), strings.Repeat("long", 20), strings.Repeat("long", 20)))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, server.URL("postgres"))
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
}
