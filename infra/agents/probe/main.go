// Command probe measures the network between a node and its neighbours, which run it as well: round trip, jitter and loss with
// small UDP packets, what the link carries with a train of UDP packets, and what one TCP connection gets, with its
// retransmissions. It serves the figures at :8090/metrics and pushes them by OTLP, and measures on demand.
//
// What a measurement of throughput may send is limited by a budget of bytes in an hour. A node takes part in one such measurement
// at a time, on either side, so that two never measure the same link at once.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/littoral-project/littoral/infra/agents/agent"
)

// options are those of the command line; each may be set by PROBE_NAME in the environment as well.
type options struct {
	Config, Node, Bind, Listen string
	Port                       int
	Echoes                     int
	Gap, Wait                  time.Duration
	Train                      int
	TCPBytes, Budget           int64
	Longest                    time.Duration
	Legacy                     bool
	OTLP, OTLPToken            string
	Every                      time.Duration
	Token                      string
}

func (o *options) flags(getenv func(string) string) *flag.FlagSet {
	f := flag.NewFlagSet("probe", flag.ContinueOnError)
	f.StringVar(&o.Config, "config", "", "file with the neighbours, in the form of L2S-M's LPM")
	f.StringVar(&o.Node, "node", getenv("NODE_NAME"), "name of this node (default: that of the file)")
	f.StringVar(&o.Bind, "bind", ":8090", "where to serve /metrics and /measure")
	f.StringVar(&o.Listen, "listen", ":8091", "where neighbours measure, by UDP and TCP")
	f.IntVar(&o.Port, "port", 8091, "where neighbours listen")
	f.IntVar(&o.Echoes, "echoes", 20, "packets of a measurement of the round trip")
	f.DurationVar(&o.Gap, "gap", 20*time.Millisecond, "between them")
	f.DurationVar(&o.Wait, "wait", time.Second, "for the last answer; what comes later is lost")
	f.IntVar(&o.Train, "train", 64, "packets of a measurement of the bandwidth")
	f.Int64Var(&o.TCPBytes, "tcp-bytes", 2<<20, "bytes of a measurement of the throughput")
	f.Int64Var(&o.Budget, "budget", 100<<20, "bytes that all measurements of bandwidth and throughput may send in an hour")
	f.DurationVar(&o.Longest, "longest", 5*time.Second, "the longest measurement of the throughput")
	f.BoolVar(&o.Legacy, "legacy-names", false, "also write the names of LPM: net_rtt_a:b")
	f.StringVar(&o.OTLP, "otlp", "", "push to this OTLP address, such as http://gateway:4318/v1/metrics")
	f.StringVar(&o.OTLPToken, "otlp-token-file", "", "bearer token for it")
	f.DurationVar(&o.Every, "interval", 15*time.Second, "between pushes")
	f.StringVar(&o.Token, "token-file", "", "bearer token that /measure asks for (default: it does not)")
	agent.FromEnv(f, "PROBE", getenv)
	return f
}

func main() {
	agent.Main("probe", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr) })
}

// run serves, or with "measure" measures every neighbour once and prints what it found as JSON.
func run(ctx context.Context, args []string, getenv func(string) string, out, errOut io.Writer) error {
	command, args := agent.Command(args)
	var o options
	f := o.flags(getenv)
	f.SetOutput(errOut)
	if err := f.Parse(args); err != nil {
		return err
	}
	p, err := newProbe(o, slog.New(slog.NewJSONHandler(errOut, nil)))
	if err != nil {
		return err
	}
	switch command {
	case "measure":
		return p.print(ctx, out)
	case "serve":
		return p.serve(ctx)
	}
	return fmt.Errorf("%q is neither serve nor measure", command)
}

// serve answers neighbours and scrapes, measures and pushes until ctx ends.
func (p *probe) serve(ctx context.Context) error {
	answering, stop := context.WithCancel(ctx)
	defer stop()
	if err := p.respond(answering); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.o.Bind)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: p.routes(), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	p.log.Info("ready", "metrics", l.Addr().String())
	p.schedule(ctx)
	if p.o.OTLP != "" {
		go p.pushing(ctx)
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return server.Shutdown(last)
}
