// Command littoral-up runs Littoral on this machine: "littoral up" starts it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
	_ "time/tzdata" // schedules may name a timezone on a machine without zoneinfo

	"github.com/alecthomas/kong"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/infra/runner/host"
	"github.com/littoral-project/littoral/knative"
	"github.com/littoral-project/littoral/shared/observe"
	"github.com/littoral-project/littoral/triggers"
)

type flags struct {
	Addr     string     `default:"127.0.0.1:8080" env:"LITTORAL_ADDR" placeholder:"HOST:PORT" help:"Where to listen (default ${default})."`
	Home     string     `default:"./.littoral" env:"LITTORAL_HOME" placeholder:"DIR" help:"Where all state is kept (default ${default})."`
	Fleet    string     `default:"default" env:"LITTORAL_FLEET" placeholder:"FILE|default|none|generated:nodes=N,seed=N" help:"The simulated clusters: a taxonomy file, the built-in ones, none, or made up."`
	Leaf     string     `env:"LITTORAL_LEAF" placeholder:"PROGRAM" help:"Run this leaf exporter (bin/leaf after make build), which tells of this machine itself."`
	Apply    []string   `env:"LITTORAL_APPLY" placeholder:"FILE" help:"Hand in this descriptor once everything runs. May be given again."`
	Database string     `env:"LITTORAL_DATABASE_URL" placeholder:"URL" help:"Use this Postgres instead of one in the home."`
	LogLevel slog.Level `default:"INFO" env:"LOG_LEVEL" placeholder:"LEVEL" help:"Least level in HOME/log: DEBUG, INFO, WARN or ERROR."`
}

const description = `Runs Littoral on this machine: all functions with a Postgres, a Prometheus, an OpenID Connect issuer
and a simulated fleet of clusters in one process. It is for laptops, tests and demos.

It writes access tokens to HOME/token-admin, token-operator, token-viewer and token-agent and keeps them fresh.
Ctrl-C stops everything; state stays in the home. A second Ctrl-C does not wait.`

func main() { os.Exit(run()) }

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitForced = 130
)

func run() int {
	var f flags
	parser := kong.Must(&f, kong.Name("littoral-up"), kong.Description(description))
	if _, err := parser.Parse(os.Args[1:]); err != nil {
		say("%v\nSee: littoral-up --help", err)
		return exitUsage
	}
	for _, file := range f.Apply {
		if _, err := os.Stat(file); err != nil { // better now than after the start
			say("--apply: %v", err)
			return exitUsage
		}
	}
	ctx, stop := interruptible()
	defer stop()
	if err := up(ctx, f); err != nil {
		say("%v", err)
		return exitFailed
	}
	return exitOK
}

// interruptible returns a context that the first Ctrl-C or SIGTERM ends; the second one ends the process. Postgres ends
// with it, and everything accepted is on disk.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		say("stopping (Ctrl-C again does not wait)")
		cancel()
		<-signals
		os.Exit(exitForced)
	}()
	return ctx, cancel
}

// stopWithin bounds a graceful stop.
const stopWithin = 30 * time.Second

func up(ctx context.Context, f flags) error {
	began := time.Now()
	log, closeLog, err := openLog(f.Home, f.LogLevel)
	if err != nil {
		return err
	}
	defer closeLog()
	say("starting, state in %s", f.Home)
	h, err := host.Start(ctx, host.Options{
		Addr: f.Addr, Home: f.Home, Fleet: f.Fleet, Leaf: f.Leaf, Database: f.Database, Registry: functions.Registry,
		Files: map[string]fs.FS{"/knative": knative.Files, "/triggers": triggers.Files},
		Log:   log, Notice: func(text string) { say("%s", text) },
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil // stopped while starting, as asked
		}
		return err
	}
	say("serving %s after %s", h.URL(), time.Since(began).Round(10*time.Millisecond))
	for _, file := range f.Apply {
		apply(ctx, h, file)
	}
	if ctx.Err() == nil {
		welcome(h, f)
	}
	select {
	case <-ctx.Done():
	case err = <-h.Failed():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	return errors.Join(err, h.Stop(stopping))
}

// openLog makes HOME/log what everything in the process logs to, as JSON.
func openLog(home string, level slog.Level) (*slog.Logger, func(), error) {
	if err := os.MkdirAll(home, 0o755); err != nil { // secrets in it are private by themselves
		return nil, nil, fmt.Errorf("home: %w", err)
	}
	path := filepath.Join(home, "log")
	file, err := host.OpenLog(path)
	if err != nil {
		return nil, nil, fmt.Errorf("log: %w", err)
	}
	log := slog.New(observe.LogHandler(slog.NewJSONHandler(file, &slog.HandlerOptions{Level: level})))
	slog.SetDefault(log)
	return log, func() { _ = file.Close() }, nil
}

// say writes a line for the person at the terminal.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "littoral-up: "+format+"\n", args...) }

// welcome says what is there and what to try.
func welcome(h *host.Host, f flags) {
	env := ""
	if filepath.Clean(f.Home) != ".littoral" {
		env += "LITTORAL_HOME=" + f.Home + " "
	}
	first := "get apps"
	if len(f.Apply) == 0 {
		first = "apply -f test/examples/hello.yaml --wait"
	}
	fmt.Fprintf(os.Stderr, `
Littoral serves %[1]s
Access tokens are in %[2]s; try, in another terminal:

  %[3]sbin/littoral console      # or open %[1]s/console/ and sign in as admin, operator or viewer (%[7]s)
  %[3]sbin/littoral %[4]s
  %[3]sbin/littoral get nodes
  curl -H "Authorization: Bearer $(cat %[5]s)" %[1]s/jobmanager/groups

Ctrl-C stops it; state stays in %[6]s.
`, h.URL(), filepath.Join(f.Home, "token-{admin,operator,viewer,agent}"), env, first,
		filepath.Join(f.Home, "token-viewer"), f.Home, filepath.Join(f.Home, "password-{admin,operator,viewer}"))
}
