// Command with-engine runs a command with a real container engine: the one that LITTORAL_TEST_ENGINE names, or a Podman of
// its own, with its storage in a temporary folder, which it starts again when it is killed. It puts the images hello:1 and
// hello:2 there. Where no engine can run a container it says so, and why, and does not run the command.
//
//	go run ./scripts/with-engine -- go test ./shared/orchestrator/engine
package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// What the command is told by.
const (
	envEngine  = "LITTORAL_TEST_ENGINE"         // the engine's socket
	envProcess = "LITTORAL_TEST_ENGINE_PROCESS" // a file with the id of its process, which may be killed: it is started again
)

func main() {
	err := run(os.Args[1:])
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		os.Exit(failed.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "with-engine:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return errors.New("usage: with-engine -- COMMAND")
	}
	ctx := context.Background()
	host, process := os.Getenv(envEngine), ""
	if host == "" {
		p, err := start(ctx)
		if err != nil {
			fmt.Printf("skipped %q: no container engine: %v\n", strings.Join(args, " "), err)
			return nil
		}
		defer p.stop()
		host, process = p.host, p.file
	}
	if err := prepare(ctx, host); err != nil {
		fmt.Printf("skipped %q: the engine at %s runs no container: %v\n", strings.Join(args, " "), host, err)
		return nil
	}
	command := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // it is what it is for
	command.Env = append(os.Environ(), envEngine+"="+host, envProcess+"="+process)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command.Run()
}

// podman is an engine of our own.
type podman struct {
	host, file, dir string
	env             []string

	mu      sync.Mutex
	ended   bool
	process *os.Process
}

// start starts Podman's service.
func start(ctx context.Context) (*podman, error) {
	if _, err := exec.LookPath("podman"); err != nil {
		return nil, errors.New("there is no podman (on Debian: apt-get install podman), and " + envEngine + " names no engine")
	}
	dir, err := os.MkdirTemp("", "engine")
	if err != nil {
		return nil, err
	}
	p := &podman{dir: dir, host: "unix://" + dir + "/podman.sock", file: dir + "/pid"}
	if err := p.configure(); err != nil {
		return nil, err
	}
	go p.serve(ctx)
	for range 100 {
		if _, err := os.Stat(dir + "/podman.sock"); err == nil {
			return p, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.stop()
	return nil, errors.New("podman system service did not begin to answer")
}

// configure writes settings under which Podman runs where it can neither raise limits nor reach systemd. An engine inside a
// container may have no other storage than plain copies.
func (p *podman) configure() error {
	var files, processes syscall.Rlimit
	const nproc = 6
	if err := errors.Join(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files), syscall.Getrlimit(nproc, &processes)); err != nil {
		return err
	}
	runtime := "crun"
	if _, err := exec.LookPath("runc"); err == nil { // crun refuses hosts with both versions of cgroups
		runtime = "runc"
	}
	settings := fmt.Sprintf(`[containers]
default_ulimits = ["nofile=%d:%d", "nproc=%d:%d"]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = %q
`, files.Cur, files.Cur, min(processes.Cur, 1<<20), min(processes.Cur, 1<<20), runtime)
	storage := fmt.Sprintf("[storage]\ndriver = \"vfs\"\nrunroot = %q\ngraphroot = %q\n", p.dir+"/run", p.dir+"/root")
	p.env = append(os.Environ(), "CONTAINERS_CONF="+p.dir+"/containers.conf", "CONTAINERS_STORAGE_CONF="+p.dir+"/storage.conf")
	return errors.Join(
		os.WriteFile(p.dir+"/containers.conf", []byte(settings), 0o600),
		os.WriteFile(p.dir+"/storage.conf", []byte(storage), 0o600),
	)
}

func (p *podman) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "podman", args...)
	c.Env = p.env
	return c
}

// serve runs the service, and starts it again whenever it ends.
func (p *podman) serve(ctx context.Context) {
	for {
		c := p.command(ctx, "--log-level=error", "system", "service", "--time=0", p.host)
		c.Stderr = os.Stderr
		p.mu.Lock()
		if p.ended {
			p.mu.Unlock()
			return
		}
		if err := c.Start(); err != nil {
			p.mu.Unlock()
			fmt.Fprintln(os.Stderr, "podman:", err)
			return
		}
		p.process = c.Process
		_ = os.WriteFile(p.file, []byte(strconv.Itoa(c.Process.Pid)), 0o600)
		p.mu.Unlock()
		_ = c.Wait()
	}
}

// stop ends the service and removes what it has.
func (p *podman) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = p.command(ctx, "rm", "--all", "--force", "--time=1").Run()
	_ = p.command(ctx, "network", "prune", "--force").Run()
	p.mu.Lock()
	p.ended = true
	if p.process != nil {
		_ = p.process.Kill()
	}
	p.mu.Unlock()
	_ = os.RemoveAll(p.dir)
}

// prepare makes the images, and sees whether one runs.
func prepare(ctx context.Context, host string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	c, err := client.New(client.WithHost(host))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	archive, err := image(ctx)
	if err != nil {
		return err
	}
	for _, tag := range []string{"1", "2"} {
		imported, err := c.ImageImport(ctx, client.ImageImportSource{Source: bytes.NewReader(archive), SourceName: "-"}, "hello:"+tag,
			client.ImageImportOptions{Changes: []string{`ENTRYPOINT ["/hello"]`, "LABEL tag=" + tag}})
		if err != nil {
			return fmt.Errorf("import an image: %w", err)
		}
		_, err = io.Copy(io.Discard, imported)
		_ = imported.Close()
		if err != nil {
			return err
		}
	}
	const name = "littoral-trial"
	remove := func() {
		_, _ = c.ContainerRemove(context.WithoutCancel(ctx), name, client.ContainerRemoveOptions{Force: true})
	}
	remove()
	defer remove()
	if _, err := c.ContainerCreate(ctx, client.ContainerCreateOptions{
		Name: name, Config: &container.Config{Image: "hello:1"},
	}); err != nil {
		return err
	}
	if _, err := c.ContainerStart(ctx, name, client.ContainerStartOptions{}); err != nil {
		return err
	}
	seen, err := c.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if err == nil && !seen.Container.State.Running {
		err = fmt.Errorf("a container ended with exit code %d", seen.Container.State.ExitCode)
	}
	return err
}

// image is a file system with one program.
func image(ctx context.Context) ([]byte, error) {
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "hello")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./test/engine/hello")
	build.Env = append(slices.Clone(os.Environ()), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the image's program: %w: %s", err, out)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: "hello", Mode: 0o755, Size: int64(len(text))}); err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	return archive.Bytes(), w.Close()
}
