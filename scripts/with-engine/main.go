// Command with-engine runs a command with a real container engine: the one at the address that LITTORAL_TEST_ENGINE names, or
// else with each of those on this machine, one after the other: dockerd of the module moby/moby/v2, which "make e2e-docker"
// builds (moby), that of the distribution (docker), and Podman. It starts them itself, with their storage in
// a temporary folder, and again whenever they are killed. It puts the images hello:1 and hello:2 there. Where an engine can run
// no container it says so, and why, and does not run the command with it.
//
//	go run ./scripts/with-engine -- go test ./shared/orchestrator/engine
//	LITTORAL_TEST_ENGINE=podman go run ./scripts/with-engine -- go test ./shared/orchestrator/engine
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
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
	named := os.Getenv(envEngine)
	if strings.Contains(named, "://") {
		return with(context.Background(), args, named, "")
	}
	var failed []error
	for _, name := range []string{moby, docker, podman} {
		if named != "" && named != name {
			continue
		}
		failed = append(failed, withOwn(context.Background(), args, name))
	}
	if len(failed) == 0 {
		return fmt.Errorf("%s=%s: it is moby, docker, podman, or an address such as unix:///run/docker.sock", envEngine, named)
	}
	return errors.Join(failed...)
}

// withOwn runs the command with an engine that it starts.
func withOwn(ctx context.Context, args []string, name string) error {
	o, err := start(ctx, name)
	if err != nil {
		fmt.Printf("skipped %q on %s: %v\n", strings.Join(args, " "), name, err)
		return nil
	}
	defer o.stop()
	return with(ctx, args, o.host, o.file)
}

// with runs the command with the engine at the address.
func with(ctx context.Context, args []string, host, process string) error {
	version, err := prepare(ctx, host)
	if err != nil {
		fmt.Printf("skipped %q: the engine at %s runs no container: %v\n", strings.Join(args, " "), host, err)
		return nil
	}
	fmt.Printf("with %s:\n", version)
	command := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // it is what it is for
	command.Env = append(os.Environ(), envEngine+"="+host, envProcess+"="+process)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command.Run()
}

// The engines that are started here.
const (
	moby   = "moby"
	docker = "docker"
	podman = "podman"
)

// own is an engine that we started.
type own struct {
	host, file, dir string
	env             []string
	args            []string // of its process
	tidy            func(ctx context.Context)

	mu      sync.Mutex
	ended   bool
	process *os.Process
	gone    chan struct{} // closed when no process is left
}

// start starts the engine's service.
func start(ctx context.Context, name string) (*own, error) {
	program := map[string]string{moby: "bin/tools/moby/dockerd", docker: "dockerd", podman: "podman"}[name]
	program, err := exec.LookPath(program)
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return nil, fmt.Errorf("%w (\"make e2e-docker\" builds moby; on Debian: apt-get install docker.io podman)", err)
	}
	dir, err := os.MkdirTemp("", "engine")
	if err != nil {
		return nil, err
	}
	o := &own{dir: dir, host: "unix://" + dir + "/engine.sock", file: dir + "/pid", env: os.Environ(), gone: make(chan struct{})}
	switch name {
	case moby:
		runtime, err := filepath.Abs("bin/tools/runc/runc")
		if err != nil {
			return nil, err
		}
		o.docker(program, "--add-runtime=built="+runtime, "--default-runtime=built")
	case docker:
		o.docker(program)
	case podman:
		if err := o.podman(); err != nil {
			return nil, err
		}
	}
	go o.serve(ctx)
	for range 300 {
		if c, err := client.New(client.WithHost(o.host)); err == nil {
			_, err := c.Ping(ctx, client.PingOptions{})
			_ = c.Close()
			if err == nil {
				return o, nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	log, _ := os.ReadFile(dir + "/log")
	o.stop()
	return nil, fmt.Errorf("%s did not begin to answer: %s", program, log[max(0, len(log)-1000):])
}

// docker has dockerd change nothing of the machine's own network: it needs no way out.
func (o *own) docker(program string, more ...string) {
	o.args = append([]string{
		program, "--host=" + o.host, "--data-root=" + o.dir + "/root", "--exec-root=" + o.dir + "/run", "--pidfile=" + o.dir + "/dockerd.pid",
		"--bridge=none", "--iptables=false", "--ip6tables=false", "--userland-proxy=false",
	}, more...)
	o.tidy = func(ctx context.Context) {
		c, err := client.New(client.WithHost(o.host))
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		all, err := c.ContainerList(ctx, client.ContainerListOptions{All: true})
		if err != nil {
			return
		}
		for _, one := range all.Items {
			_, _ = c.ContainerRemove(ctx, one.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		}
		_, _ = c.NetworkPrune(ctx, client.NetworkPruneOptions{})
	}
}

// podman writes settings under which Podman runs where it can neither raise limits nor reach systemd. An engine inside a
// container may have no other storage than plain copies.
func (o *own) podman() error {
	var files, processes syscall.Rlimit
	const (
		nproc  = 6
		enough = 1 << 14 // processes; the runtime may be allowed fewer than we are
	)
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
`, files.Cur, files.Cur, min(processes.Cur, enough), min(processes.Cur, enough), runtime)
	storage := fmt.Sprintf("[storage]\ndriver = \"vfs\"\nrunroot = %q\ngraphroot = %q\n", o.dir+"/run", o.dir+"/root")
	const registries = "[[registry]]\nlocation = \"127.0.0.1\"\ninsecure = true\n" // without TLS, as for Docker
	o.env = append(o.env, "CONTAINERS_CONF="+o.dir+"/containers.conf", "CONTAINERS_STORAGE_CONF="+o.dir+"/storage.conf",
		"CONTAINERS_REGISTRIES_CONF="+o.dir+"/registries.conf")
	o.args = []string{"podman", "--log-level=error", "system", "service", "--time=0", o.host}
	o.tidy = func(ctx context.Context) {
		for _, args := range [][]string{{"rm", "--all", "--force", "--time=1"}, {"network", "prune", "--force"}} {
			c := exec.CommandContext(ctx, "podman", args...)
			c.Env = o.env
			_ = c.Run()
		}
	}
	return errors.Join(
		os.WriteFile(o.dir+"/containers.conf", []byte(settings), 0o600),
		os.WriteFile(o.dir+"/storage.conf", []byte(storage), 0o600),
		os.WriteFile(o.dir+"/registries.conf", []byte(registries), 0o600),
	)
}

// serve runs the service, and starts it again whenever it ends.
func (o *own) serve(ctx context.Context) {
	defer close(o.gone)
	log, err := os.Create(o.dir + "/log")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer func() { _ = log.Close() }()
	for {
		_ = os.Remove(o.dir + "/dockerd.pid")                   // of one that was killed
		c := exec.CommandContext(ctx, o.args[0], o.args[1:]...) //nolint:gosec // they are ours
		c.Env, c.Stdout, c.Stderr = o.env, log, log
		o.mu.Lock()
		if o.ended {
			o.mu.Unlock()
			return
		}
		if err := c.Start(); err != nil {
			o.mu.Unlock()
			fmt.Fprintln(os.Stderr, o.args[0]+":", err)
			return
		}
		o.process = c.Process
		_ = os.WriteFile(o.file, []byte(strconv.Itoa(c.Process.Pid)), 0o600)
		o.mu.Unlock()
		_ = c.Wait()
	}
}

// stop ends the service and removes what it has.
func (o *own) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	o.tidy(ctx)
	o.mu.Lock()
	o.ended = true
	process := o.process
	o.mu.Unlock()
	if process != nil {
		_ = process.Signal(syscall.SIGTERM)
		select {
		case <-o.gone:
		case <-ctx.Done():
			_ = process.Kill()
			<-o.gone
		}
	}
	o.unmount()
	if err := os.RemoveAll(o.dir); err != nil {
		fmt.Fprintln(os.Stderr, "with-engine:", err)
	}
}

// unmount takes away what an engine that was killed has left mounted below its folder.
func (o *own) unmount() {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return
	}
	for _, line := range slices.Backward(strings.Split(string(mounts), "\n")) {
		if at := strings.Fields(line); len(at) > 1 && strings.HasPrefix(at[1], o.dir+"/") {
			_ = syscall.Unmount(at[1], 0)
		}
	}
}

// prepare makes the images, sees whether one runs, and tells the engine's name and version.
func prepare(ctx context.Context, host string) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	c, err := client.New(client.WithHost(host))
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	archive, err := image(ctx)
	if err != nil {
		return "", err
	}
	for _, tag := range []string{"1", "2"} {
		imported, err := c.ImageImport(ctx, client.ImageImportSource{Source: bytes.NewReader(archive), SourceName: "-"}, "hello:"+tag,
			client.ImageImportOptions{Changes: []string{`ENTRYPOINT ["/hello"]`, "LABEL tag=" + tag}})
		if err != nil {
			return "", fmt.Errorf("import an image: %w", err)
		}
		_, err = io.Copy(io.Discard, imported)
		_ = imported.Close()
		if err != nil {
			return "", err
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
		return "", err
	}
	if _, err := c.ContainerStart(ctx, name, client.ContainerStartOptions{}); err != nil {
		return "", err
	}
	seen, err := c.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if err == nil && !seen.Container.State.Running {
		err = fmt.Errorf("a container ended with exit code %d", seen.Container.State.ExitCode)
	}
	if err != nil {
		return "", err
	}
	about, err := c.ServerVersion(ctx, client.ServerVersionOptions{})
	return cmp.Or(about.Platform.Name, "Docker") + " " + about.Version, err
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
