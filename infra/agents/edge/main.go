// Command edge is the agent of one machine with Docker or Podman: it asks the controller for the jobs of the orchestrator
// "compose" that are placed here, runs their compose files on the machine's engine and reports on them. It keeps nothing
// itself: what is to run is written down in the engine (shared/orchestrator/engine), so that it may be killed at any moment,
// and what runs goes on while the controller cannot be reached.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/littoral-project/littoral/infra/agents/agent"
	"github.com/littoral-project/littoral/infra/agents/controller"
	"github.com/littoral-project/littoral/shared/logs/open"
)

// options are those of the command line; each may be set by EDGE_NAME in the environment as well.
type options struct {
	Controller        controller.Options
	Agent, Clusters   string
	Engine            string
	HostAccess        bool
	Bind              string
	Wake, WakeToken   string
	WakeCert, WakeKey string
	Poll, Sync, Wait  time.Duration
	AuthFile          string
	Store             open.Config
	Node, LogsState   string
	LogsEvery         time.Duration
}

func (o *options) flags(getenv func(string) string) *flag.FlagSet {
	f := flag.NewFlagSet("edge", flag.ContinueOnError)
	o.Controller.Flags(f)
	f.StringVar(&o.Agent, "agent-id", "", "icos_agent_id: this agent")
	f.StringVar(&o.Clusters, "cluster", "", "names of this machine in targets, with commas between (default: the agent's id)")
	f.StringVar(&o.Engine, "engine", "auto", "socket of Docker or Podman, such as unix:///run/docker.sock; auto looks for it")
	f.BoolVar(&o.HostAccess, "host-access", false, "let services have directories and namespaces of the host, and rights beyond those of a container")
	f.StringVar(&o.Bind, "bind", "127.0.0.1:2546", "where to answer /healthz; off = nowhere")
	f.StringVar(&o.Wake, "wake", "", "where the controller can tell that there is work, such as :2547 (default: nowhere, the agent only asks)")
	f.StringVar(&o.WakeToken, "wake-token-file", "", "the token that it needs for that; it is read anew for each call")
	f.StringVar(&o.WakeCert, "wake-cert-file", "", "certificate to answer with there (default: without TLS)")
	f.StringVar(&o.WakeKey, "wake-key-file", "", "its key")
	f.DurationVar(&o.Poll, "poll", 5*time.Second, "between two questions for work")
	f.DurationVar(&o.Sync, "sync", 30*time.Second, "between two comparisons of what runs with what should")
	f.DurationVar(&o.Wait, "wait", 10*time.Second, "how long new containers are watched before the next comparison looks at them")
	f.StringVar(&o.AuthFile, "registry-auth-file", "", "names and passwords for registries, as \"docker login\" writes them; read anew for each image")
	f.StringVar(&o.Store.Backend, "logs-backend", "", "where to bring what containers write: victorialogs, loki or files (default: nowhere)")
	f.StringVar(&o.Store.URL, "logs-url", "", "base URL of that")
	f.StringVar(&o.Store.Dir, "logs-dir", "", "folder of files")
	f.StringVar(&o.Store.Tenant, "logs-tenant", "", "tenant there: of VictoriaLogs ACCOUNT:PROJECT")
	f.StringVar(&o.Store.Authorization, "logs-authorization", "", "header of that name, such as Bearer x; better given as EDGE_LOGS_AUTHORIZATION")
	f.StringVar(&o.LogsState, "logs-state", "", "file that keeps how far logs were brought (default: a new agent begins with what is written from then on)")
	f.DurationVar(&o.LogsEvery, "logs-every", 5*time.Second, "between two looks at what containers wrote")
	host, _ := os.Hostname()
	f.StringVar(&o.Node, "node", host, "name of the machine in logs")
	agent.FromEnv(f, "EDGE", getenv)
	return f
}

func main() {
	agent.Main("edge", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Getenv, os.Stderr) })
}

func run(ctx context.Context, args []string, getenv func(string) string, errOut io.Writer) error {
	var o options
	f := o.flags(getenv)
	f.SetOutput(errOut)
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q is no option", f.Arg(0))
	}
	client, err := o.Controller.HTTP()
	if err != nil {
		return err
	}
	e, err := newEdge(o, client, slog.New(slog.NewJSONHandler(errOut, nil)))
	if err != nil {
		return err
	}
	if o.Bind != "off" {
		end, err := serve(ctx, o.Bind, e, nil)
		if err != nil {
			return err
		}
		defer end()
	}
	if o.Wake != "" {
		if o.WakeToken == "" {
			return errors.New("--wake needs --wake-token-file")
		}
		var certificates []tls.Certificate
		if o.WakeCert != "" {
			one, err := tls.LoadX509KeyPair(o.WakeCert, o.WakeKey)
			if err != nil {
				return fmt.Errorf("wake-cert-file: %w", err)
			}
			certificates = append(certificates, one)
		}
		end, err := serve(ctx, o.Wake, http.HandlerFunc(e.wake), certificates)
		if err != nil {
			return err
		}
		defer end()
	}
	e.run(ctx)
	return nil
}

// serve answers at the address until it is ended, with TLS if there is a certificate.
func serve(ctx context.Context, address string, handler http.Handler, certificates []tls.Certificate) (end func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if len(certificates) > 0 {
		listener = tls.NewListener(listener, &tls.Config{Certificates: certificates, MinVersion: tls.VersionTLS12})
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return func() { _ = server.Close() }, nil
}
