package host

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEvery_goesByTheWallClock: from the view of timers, a sleep of the machine sets it forward.
func TestEvery_goesByTheWallClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const period = 20 * time.Minute
		var ahead, done atomic.Int64
		var failing atomic.Bool
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			every(ctx, period, now, func() error {
				done.Add(1)
				if failing.Load() {
					return errors.New("the disk is full")
				}
				return nil
			})
		}()
		after := func(d time.Duration) int64 {
			time.Sleep(d)
			synctest.Wait()
			return done.Load()
		}
		require.EqualValues(t, 0, after(period-time.Second))
		require.EqualValues(t, 1, after(glance))
		require.EqualValues(t, 1, after(period/2))

		ahead.Store(int64(time.Hour)) // the machine has slept
		require.EqualValues(t, 2, after(glance), "not only when a timer's period is over")
		require.EqualValues(t, 2, after(period/2))

		ahead.Store(0) // the clock was set back: the tokens are not valid yet
		require.EqualValues(t, 3, after(glance))
		require.EqualValues(t, 3, after(period/2))

		failing.Store(true)
		require.EqualValues(t, 4, after(period/2))
		require.EqualValues(t, 5, after(glance), "a failure is tried again soon")
		cancel()
		<-ended
	})
}
