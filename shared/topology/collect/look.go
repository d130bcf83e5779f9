package collect

import (
	"context"
	"errors"
	"time"

	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// Open returns the Collector that a function's settings name. It has not dialled yet.
func Open(env *function.Env) (*Collector, error) {
	var c Config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	return New(c, env.HTTP)
}

// Look makes the picture of now the stored one, which announces what has changed. Twice is harmless: a picture that is
// not newer than the stored one is dropped. The error is that of Collect or of the store; then nothing is changed.
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
