// Package fit trains the models that were asked for.
package fit

import (
	"context"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/objects/open"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// Spec declares the function. A training takes seconds, with many values a minute or two.
var Spec = function.Spec{
	Consumes:    []string{events.TrainingRequested},
	NoPrewake:   true,
	Timeout:     5 * time.Minute,
	Concurrency: 1,
	Class:       function.Series,
	Needs:       []function.Need{function.Telemetry, function.Objects},
}

// Function is the worker.
type Function struct{ trainer metricsexport.Trainer }

type config struct {
	telemetry.Config
	Objects open.Config
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	var c config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	client, err := telemetry.New(c.Config, env.HTTP)
	if err != nil {
		return nil, err
	}
	objects, err := open.Store(c.Objects, env.HTTP)
	return &Function{metricsexport.Trainer{DB: env.DB, Telemetry: client, Models: metricsexport.NewModels(objects)}}, err
}

// Work trains. Done again, it finds the training over, or trains the same model once more: it has a seed.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	about, err := events.Data[events.Training](e)
	if err != nil {
		return err
	}
	return f.trainer.Train(ctx, about.ID)
}
