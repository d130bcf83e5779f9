// Package compute makes the values that models foresee, when they are due, and sends all exported metrics to where they are queried.
package compute

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/objects/open"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:    []string{events.Tick},
	Concurrency: 1, // a second one at the same time would make the same values
	Class:       function.Series,
	Needs:       []function.Need{function.Telemetry, function.Objects},
}

// Function is the task.
type Function struct {
	computer metricsexport.Computer
	config   config
	client   *http.Client
	log      *slog.Logger
}

type config struct {
	telemetry.Config
	Objects open.Config
	Push    metricsexport.PushConfig
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{client: env.HTTP, log: env.Log}
	if err := env.Config(&f.config); err != nil {
		return nil, err
	}
	client, err := telemetry.New(f.config.Config, env.HTTP)
	if err != nil {
		return nil, err
	}
	objects, err := open.Store(f.config.Objects, env.HTTP)
	f.computer = metricsexport.Computer{DB: env.DB, Telemetry: client, Models: metricsexport.NewModels(objects)}
	return f, err
}

// pushing is what remains for the push when all time for forecasts is used up.
const pushing = 10 * time.Second

// Run makes what is due. Twice is harmless: the same values come of it.
func (f *Function) Run(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, Spec.Limits().Timeout-pushing)
	defer cancel()
	told, failed, err := f.computer.Due(within)
	if failed > 0 {
		f.log.WarnContext(ctx, "metrics that could not be foreseen", "failed", failed, "told", told)
	}
	if err != nil {
		return err
	}
	return metricsexport.Push(ctx, f.computer.DB, f.client, f.config.Push, f.config.Config)
}
