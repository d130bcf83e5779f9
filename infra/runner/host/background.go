package host

import (
	"context"
	"fmt"
	"sync"
)

// background is work that runs until it is stopped.
type background struct {
	ctx    context.Context // of work that belongs to no call
	cancel context.CancelFunc
	all    sync.WaitGroup
}

func newBackground() *background {
	b := &background{}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

func (b *background) run(work func(context.Context)) { b.all.Go(func() { work(b.ctx) }) }

// stop ends the work and waits for it, at most until ctx ends.
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
