// Command bgp tells the controller of a network that routers describe: it hears of their links by BGP-LS, and of neighbours by
// what lldpd has found, and hands both in as a NetworkTopology document when it changes. It announces nothing, and keeps nothing
// over a restart.
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
	"strings"
	"time"

	"github.com/littoral-project/littoral/infra/agents/agent"
	"github.com/littoral-project/littoral/infra/agents/controller"
)

// options are those of the command line; each may be set by BGP_NAME in the environment as well.
type options struct {
	Controller          controller.Options
	Name, Network       string
	Names, NamesFile    string
	Bandwidth           string
	AS                  uint
	RouterID, Listen    string
	Speakers, LLDP      list
	Password            string
	Settle              time.Duration
	Node, LLDPCLI       string
	Bind                string
	Pause, Every, Again time.Duration
}

// list is a flag that may be given several times, or with commas.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

// Set adds to it.
func (l *list) Set(text string) error {
	*l = append(*l, strings.Split(text, ",")...)
	return nil
}

func (o *options) flags(getenv func(string) string) *flag.FlagSet {
	f := flag.NewFlagSet("bgp", flag.ContinueOnError)
	o.Controller.Flags(f)
	f.StringVar(&o.Name, "name", "", "name of the document at the controller (default: bgp, or lldp-NODE)")
	f.StringVar(&o.Network, "network", "", "networkImplementation: the network's name there, which no other document has (default: that of the document)")
	f.StringVar(&o.Names, "names", "", "nodes of the taxonomy: id=name,id=name; an id is a router's, the name of a system, or an address of it")
	f.StringVar(&o.NamesFile, "names-file", "", "the same, one on each line; it is read anew each time")
	f.StringVar(&o.Bandwidth, "bandwidth", "", "of links that do not say theirs in either direction, such as 1G (default: these are left out)")
	f.UintVar(&o.AS, "as", 64512, "autonomous system of this agent")
	f.StringVar(&o.RouterID, "router-id", "", "of this agent: an IPv4 address that no router has")
	f.Var(&o.Speakers, "speaker", "a router or route reflector that speaks BGP-LS: address[:port]@AS; more than one are views of the same network")
	f.StringVar(&o.Listen, "listen", "", "where speakers may connect, such as :179 (default: nowhere, the agent connects)")
	f.StringVar(&o.Password, "password-file", "", "password of the sessions (TCP MD5)")
	f.DurationVar(&o.Settle, "settle", time.Minute, "how long a speaker is listened to that does not say when it has told all (End-of-RIB)")
	f.Var(&o.LLDP, "lldp", "[node=]file with what \"lldpcli -f json show neighbors\" printed on a node, by default on this one; read anew each time")
	host, _ := os.Hostname()
	f.StringVar(&o.Node, "node", host, "name of this node in the taxonomy")
	f.StringVar(&o.LLDPCLI, "lldpcli", "lldpcli", "the program that bgp lldp asks when no file is given")
	f.StringVar(&o.Bind, "bind", "127.0.0.1:2548", "where to answer /healthz; off = nowhere")
	f.DurationVar(&o.Pause, "pause", 5*time.Second, "after a change, for others that come with it; the controller is told at most once in it")
	f.DurationVar(&o.Every, "every", 30*time.Second, "between looks at files and names, also when no speaker tells anything")
	f.DurationVar(&o.Again, "again", 10*time.Minute, "between looks whether the controller still has the document")
	agent.FromEnv(f, "BGP", getenv)
	return f
}

func main() {
	agent.Main("bgp", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr) })
}

// run serves, or with "lldp" does the same without BGP.
func run(ctx context.Context, args []string, getenv func(string) string, out, errOut io.Writer) error {
	command, args := agent.Command(args)
	var o options
	f := o.flags(getenv)
	f.SetOutput(errOut)
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q is no option", f.Arg(0))
	}
	log := slog.New(slog.NewJSONHandler(errOut, nil))
	switch command {
	case "serve":
		return o.serve(ctx, out, log)
	case "lldp":
		return o.lldp(ctx, out, log)
	}
	return fmt.Errorf("%q is neither serve nor lldp", command)
}

// serve tells what speakers and files of LLDP say.
func (o *options) serve(ctx context.Context, out io.Writer, log *slog.Logger) error {
	o.defaults("bgp")
	t, err := newTeller(*o, out, log)
	if err != nil {
		return err
	}
	s, err := listen(ctx, *o, log, t.look)
	if err != nil {
		return err
	}
	defer s.stop()
	t.sources = append(t.sources, s)
	for _, file := range o.LLDP {
		t.sources = append(t.sources, neighboursIn(file, o.Node))
	}
	return o.follow(ctx, t)
}

// lldp tells what lldpd found, on this node or in files of several.
func (o *options) lldp(ctx context.Context, out io.Writer, log *slog.Logger) error {
	o.defaults("lldp-" + o.Node)
	t, err := newTeller(*o, out, log)
	if err != nil {
		return err
	}
	for _, file := range o.LLDP {
		t.sources = append(t.sources, neighboursIn(file, o.Node))
	}
	if len(o.LLDP) == 0 {
		t.sources = append(t.sources, neighboursHere(o.LLDPCLI, o.Node))
	}
	return o.follow(ctx, t)
}

func (o *options) defaults(name string) {
	if o.Name == "" {
		o.Name = name
	}
	if o.Network == "" {
		o.Network = o.Name
	}
}

// follow tells until ctx ends.
func (o *options) follow(ctx context.Context, t *teller) error {
	if o.Bind != "off" {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Bind)
		if err != nil {
			return err
		}
		server := &http.Server{Handler: t, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second}
		go func() { _ = server.Serve(l) }()
		defer func() { _ = server.Close() }()
	}
	t.follow(ctx)
	return nil
}
