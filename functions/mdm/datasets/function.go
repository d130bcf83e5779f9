// Package datasets publishes to the metadata graph which data sets there are in a folder or bucket.
package datasets

import (
	"context"
	"fmt"
	"time"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm/connect"
	"github.com/littoral-project/littoral/shared/objects"
	"github.com/littoral-project/littoral/shared/objects/open"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{Consumes: []string{events.Tick}, Class: function.Batch, Concurrency: 1, Needs: []function.Need{function.Objects}}

type config struct {
	// Where data sets are, in the form of OBJECTS_URL and with its credentials.
	Where   string `envconfig:"MDM_DATASETS_URL"`
	Objects open.Config
}

// Function is the task with its store and where it looks.
type Function struct {
	db   *store.DB
	from objects.Store // nil where none is set
}

// New reads the settings and dials nothing.
func New(env *function.Env) (*Function, error) {
	var c config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	c.Objects.URL = c.Where
	from, err := open.Store(c.Objects, env.HTTP)
	if err != nil {
		return nil, fmt.Errorf("MDM_DATASETS_URL, which is read as %w", err)
	}
	return &Function{env.DB, from}, nil
}

// Run publishes what has changed since it ran last.
func (f *Function) Run(ctx context.Context) error {
	if f.from == nil {
		return nil
	}
	return connect.DataSets(ctx, f.db, f.from, time.Now())
}
