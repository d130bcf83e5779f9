package collect

import (
	"context"
	"errors"
	"time"

	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// Open returns the Collector for a function's settings. It has not dialled yet.
func Open(env *function.Env) (*Collector, error) {
	var c Config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	return New(c, env.HTTP)
}

// Look collects the topology and stores it, which announces changes. Doing so twice is harmless: a topology that is not
// newer than the stored one is dropped. The error is that of Collect or of the store; then nothing is changed.
func (c *Collector) Look(ctx context.Context, db *store.DB) (changed bool, err error) {
	picture, err := c.Collect(ctx, time.Now())
	if err != nil {
		return false, err
	}
	before, _, err := topology.Current(ctx, db)
	switch {
	case err == nil:
		picture.Complete(before)
	case !errors.Is(err, topology.ErrUnknown):
		return false, err
	}
	err = db.Tx(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		changed, err = topology.Save(ctx, tx, picture.Taxonomy, picture.At, c.config.StaleAfter)
		return err
	})
	return changed, err
}
