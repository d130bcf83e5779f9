// Package forward sends what is published on the bus to brokers elsewhere.
package forward

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/sink"
	"github.com/littoral-project/littoral/shared/bus/sink/mqtt"
	"github.com/littoral-project/littoral/shared/bus/sink/zenoh"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:  []string{events.TopologyPublished, events.ValuePublished, events.Tick},
	NoPrewake: true,
	Class:     function.Remote,
	Needs:     []function.Need{function.BusSinks},
}

// Function is the worker with the brokers that the settings name.
type Function struct {
	db    *store.DB
	log   *slog.Logger
	sinks []sink.Sink
}

type config struct {
	Sinks []string `envconfig:"BUS_SINKS"`
}

// New reads the settings and dials nothing.
func New(env *function.Env) (*Function, error) {
	var c config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	f := &Function{db: env.DB, log: env.Log}
	for _, text := range c.Sinks {
		s, err := open(text, env.HTTP)
		if err != nil {
			return nil, err
		}
		f.sinks = append(f.sinks, s)
	}
	return f, nil
}

func open(text string, client *http.Client) (sink.Sink, error) {
	a, err := sink.ParseAddress(text)
	if err != nil {
		return nil, err
	}
	if a.URL.Scheme == "http" || a.URL.Scheme == "https" {
		return zenoh.New(a, client)
	}
	return mqtt.New(a)
}

// Work sends each broker what it has not got. It looks at the bus and not at the event, so one event stands for all before
// it. A broker that is away is tried again at the next event and at each tick: the bus keeps what it has to be told.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	var group sync.WaitGroup
	for _, s := range f.sinks {
		group.Go(func() {
			if err := sink.Forward(ctx, f.db, f.log, s); err != nil {
				f.log.WarnContext(ctx, "a sink of the bus was not told", "sink", s.Name(), "error", err.Error())
			}
		})
	}
	group.Wait()
	if e.Type() != events.Tick {
		return nil
	}
	names := make([]string, len(f.sinks))
	for i, s := range f.sinks {
		names[i] = s.Name()
	}
	return bus.ForgetSinks(ctx, f.db, names)
}
