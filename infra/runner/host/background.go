package host

import (
	"context"
	"fmt"
	"sync"
)

// background is work that goes on until it is told to stop.
type background struct {
	ctx    context.Context //nolint:containedctx // of work that belongs to no call
	cancel context.CancelFunc
	all    sync.WaitGroup
}

func newBackground() *background {
	b := &background{}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

func (b *background) run(work func(context.Context)) { b.all.Go(func() { work(b.ctx) }) }

// stop ends the work and waits for it, but not longer than ctx.
func (b *background) stop(ctx context.Context) error {
	b.cancel()
	ended := make(chan struct{})
	go func() {
		b.all.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("background work does not end: %w", context.Cause(ctx))
	}
}
