package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is one run of the server.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	tail *tail
}

// initialise fills the data directory completely or not at all: a first start may be interrupted at any time, and an
// incomplete result of initdb looks like a data directory.
func (s *Server) initialise(ctx context.Context) error {
	if majorOf(s.dir) != "" {
		if _, err := os.Stat(filepath.Join(s.dir, "global", "pg_control")); err != nil {
			return halfMade(s.dir, err)
		}
		return nil
	}
	made := s.dir + ".new"
	if err := os.RemoveAll(made); err != nil { // left by an interrupted start
		return err
	}
	if err := os.Mkdir(made, 0o700); err != nil {
		return err
	}
	if err := s.as.own(made); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), "-D", made, "-U", User, "--encoding=UTF8",
		"--no-locale", "--auth-local=trust", "--auth-host=reject", "--no-sync", "--no-instructions")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as.credential()}
	cmd.Dir, cmd.Env = "/", environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb as %s: %w\n%s", s.as.name, err, lastLines(out))
	}
	if err := os.Remove(s.dir); err != nil { // it is empty
		return err
	}
	return os.Rename(made, s.dir)
}

func (a account) credential() *syscall.Credential {
	if !a.drop {
		return nil
	}
	return &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)} // ids are never negative
}

// environment removes settings that are meant for clients (PGHOST, PGDATA, ...).
func environment() []string {
	return append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PG") }), "LC_ALL=C")
}

func (s *Server) arguments() []string {
	settings := map[string]string{
		"listen_addresses":        "",
		"unix_socket_directories": s.socket,
		"port":                    "5432", // only determines the name of the socket file
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"logging_collector":       "off",
		"log_destination":         "stderr",
		"jit":                     "off", // costs more than it saves in short statements
	}
	if !s.options.Durable {
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
		settings["autovacuum"] = "off"
		settings["max_connections"] = "200"
	}
	maps.Copy(settings, s.options.Settings)
	args := []string{"-D", s.dir}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// launch starts the server and waits until it answers. Backends of a killed predecessor may still use its shared memory
// for a moment; a server that fails for that reason is started again.
func (s *Server) launch(ctx context.Context) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		p, err := spawn(filepath.Join(s.bin, "postgres"), s.arguments(), s.as, s.options.Log)
		if err != nil {
			return err
		}
		s.process = p
		err = s.waitReady(ctx)
		if err == nil {
			return nil
		}
		_ = p.stop()
		said := p.tail.String()
		if !strings.Contains(said, "is still in use") || time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("%w; it said:\n%s", err, said)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// spawn starts the program so that it ends with this process. On Linux the kernel sends it SIGINT (a fast, clean
// shutdown) when the thread that started it dies, so that thread is kept until the program has ended.
func spawn(program string, args []string, as account, log io.Writer) (*process, error) {
	p := &process{done: make(chan struct{}), tail: &tail{}}
	p.cmd = exec.Command(program, args...)
	p.cmd.Dir, p.cmd.Env = "/", environment()
	p.cmd.Stdout = io.MultiWriter(p.tail, log)
	p.cmd.Stderr = p.cmd.Stdout
	p.cmd.WaitDelay = time.Second // a backend that outlives a killed server keeps the log pipe open
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: as.credential(),
		Setpgid:    true, // this process handles a Ctrl-C in the terminal first
	}
	endWithParent(p.cmd.SysProcAttr, syscall.SIGINT)
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // its log has the reason
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s as %s: %w", program, as.name, err)
	}
	return p, nil
}

// stop ends the process, cleanly if possible. It has no effect on one that has ended.
func (p *process) stop() error {
	for _, way := range []struct {
		signal syscall.Signal
		within time.Duration
	}{{syscall.SIGINT, 20 * time.Second}, {syscall.SIGQUIT, 10 * time.Second}, {syscall.SIGKILL, 5 * time.Second}} {
		_ = p.cmd.Process.Signal(way.signal)
		select {
		case <-p.done:
			return nil
		case <-time.After(way.within):
		}
	}
	return errors.New("local Postgres does not stop")
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stopLeftover stops a server that an earlier process left running in dir. It also removes a postmaster.pid whose
// number now belongs to another process, since Postgres would take that for a running server.
func stopLeftover(ctx context.Context, dir string) error {
	file := filepath.Join(dir, "postmaster.pid")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil // no file, no server
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 0 || !serves(pid, dir) { // a signal to 0 or less would go to a whole process group
		return os.Remove(file)
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT} {
		_ = syscall.Kill(pid, signal)
		for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; {
			if !serves(pid, dir) {
				return nil
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return fmt.Errorf("a Postgres (pid %d) still runs on %s and does not stop; end it: kill -INT %d", pid, dir, pid)
}

// startedOn asks ps whether the process is a Postgres that was started with dir as its data directory.
func startedOn(pid int, dir string) bool {
	out, err := exec.Command("ps", "-ww", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return false // there is no such process
	}
	_, rest, _ := strings.Cut(string(out), " -D ")
	named, _, _ := strings.Cut(rest, " -c ")
	its, err := os.Stat(named)
	if err != nil {
		return false
	}
	ours, err := os.Stat(dir)
	return err == nil && os.SameFile(its, ours)
}

// tail keeps the last few kilobytes that were written to it.
type tail struct {
	mu   sync.Mutex
	last []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, b...)
	if len(t.last) > 4096 {
		t.last = append([]byte(nil), t.last[len(t.last)-2048:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.last)
}
