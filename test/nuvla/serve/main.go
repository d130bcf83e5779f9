// Command serve runs the double of Nuvla, alone or around a command that is told where it is:
//
//	go run ./test/nuvla/serve --edges=harbour -- bin/littoral up
//
// Then the jobs of the laptop's Docker hosts go through the functions of Nuvla instead of the fleet's agents.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/littoral-project/littoral/test/nuvla"
)

func main() {
	err := run(os.Args[1:])
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		os.Exit(max(failed.ExitCode(), 1))
	case err != nil && !errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	f := flag.NewFlagSet("serve", flag.ContinueOnError)
	bind := f.String("bind", "127.0.0.1:0", "where to serve")
	edges := f.String("edges", "harbour", "names of the NuvlaEdges, with commas between; each has Docker and Kubernetes")
	step := f.Duration("step", time.Second, "how long a job waits, and then runs")
	if err := f.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := nuvla.New()
	for name := range strings.SplitSeq(*edges, ",") {
		server.AddEdge(name, nuvla.Docker, nuvla.Kubernetes)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *bind)
	if err != nil {
		return err
	}
	go server.Go(*step, ctx.Done())
	web := &http.Server{Handler: server, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = web.Serve(listener) }()
	told := []string{
		"NUVLA_ENDPOINT=http://" + listener.Addr().String(), "NUVLA_API_KEY=" + nuvla.Key, "NUVLA_API_SECRET=" + nuvla.Secret,
	}
	if f.NArg() == 0 {
		for _, one := range told {
			name, value, _ := strings.Cut(one, "=")
			fmt.Printf("export %s='%s'\n", name, value)
		}
		<-ctx.Done()
		return nil
	}
	command := exec.CommandContext(ctx, f.Arg(0), f.Args()[1:]...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	command.Env = append(os.Environ(), told...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = command.Run()
	if ctx.Err() != nil {
		return nil
	}
	return err
}
