// Package score observes all nodes and scores them for each profile.
package score

import (
	"context"
	"time"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/awareness"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// Spec declares the function.
var Spec = function.Spec{Consumes: []string{events.Tick}, Class: function.Batch, Concurrency: 1}

// Function is the task with its store.
type Function struct {
	db     *store.DB
	config config
}

type config struct {
	topology.Freshness
	awareness.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.config)
}

// Run looks once. A second look within seconds changes no moving average.
func (f *Function) Run(ctx context.Context) error {
	return awareness.Observe(ctx, f.db, f.config.Settings, f.config.StaleAfter, time.Now().UTC())
}
