// Command sidecar stands beside a COMPSs agent in the pod of a component. It hears from the bus where the other pods of the
// component run, and gives the agent these as workers: one that appears is added, one that has gone is removed.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/littoral-project/littoral/infra/agents/agent"
)

// options are those of the command line; each may be set by DPE_NAME in the environment as well.
type options struct {
	Instance, Component string
	Bus, Token          string
	Agent               string
	Self                string
	Port                int
	Cores, Memory       float64
	State               string
	Every               time.Duration
}

func (o *options) flags(getenv func(string) string) *flag.FlagSet {
	f := flag.NewFlagSet("sidecar", flag.ContinueOnError)
	f.StringVar(&o.Instance, "instance", getenv("ICOS_APP_INSTANCE"), "id of the application")
	f.StringVar(&o.Component, "component", getenv("ICOS_APP_COMPONENT"), "name of the component")
	f.StringVar(&o.Bus, "bus", getenv("BUS_URL"), "the bus: http or https for Zenoh's REST form, mqtt or mqtts for a broker of MQTT 5")
	f.StringVar(&o.Token, "token", getenv("BUS_TOKEN"), "token of the application, for the bus")
	f.StringVar(&o.Agent, "agent", "http://127.0.0.1:46101/COMPSs", "the COMPSs agent beside this")
	f.StringVar(&o.Self, "self", getenv("POD_IP"), "address of this pod, which is no worker of its own")
	f.IntVar(&o.Port, "port", 46102, "where agents speak with each other, of workers that say nothing else")
	f.Float64Var(&o.Cores, "cores", 1, "of workers that say nothing else")
	f.Float64Var(&o.Memory, "memory", -1, "GB of workers that say nothing else; negative = unknown")
	f.StringVar(&o.State, "state", "", "file that remembers which workers were added, over restarts (default: nowhere)")
	f.DurationVar(&o.Every, "every", time.Minute, "between two comparisons with the agent when nothing has changed")
	agent.FromEnv(f, "DPE", getenv)
	return f
}

func main() {
	agent.Main("sidecar", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Getenv, os.Stderr) })
}

// run follows the bus until ctx ends.
func run(ctx context.Context, args []string, getenv func(string) string, errOut io.Writer) error {
	var o options
	f := o.flags(getenv)
	f.SetOutput(errOut)
	if err := f.Parse(args); err != nil {
		return err
	}
	switch {
	case o.Instance == "" || o.Component == "":
		return errors.New("ICOS_APP_INSTANCE and ICOS_APP_COMPONENT say whose pods to follow")
	case o.Bus == "":
		return errors.New("BUS_URL says where the bus is")
	}
	log := slog.New(slog.NewJSONHandler(errOut, nil))
	subscribe, err := source(o, log)
	if err != nil {
		return err
	}
	r, err := newReconciler(o, compss{o.Agent, &http.Client{Timeout: 30 * time.Second}}, log)
	if err != nil {
		return err
	}
	values := make(chan told)
	go subscribe(ctx, values)
	return r.follow(ctx, values)
}
