// Package judge promotes the models that pipelines have trained, or does not, or goes back to those before.
package judge

import (
	"context"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/objects/open"
	"github.com/littoral-project/littoral/shared/pdlc/pipeline"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:    []string{events.Tick},
	Concurrency: 1,
	Class:       function.Series,
	Needs:       []function.Need{function.Telemetry, function.Objects},
}

// Function is the task.
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

// Run judges the trainings that have ended. Done again, it finds none.
func (f *Function) Run(ctx context.Context) error { return pipeline.JudgeEnded(ctx, f.trainer) }
