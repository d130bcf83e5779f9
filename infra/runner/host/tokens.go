package host

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/shared/durable"
)

// TokenFile is where the access token of a role is kept, fresh for as long as the host runs.
func (h *Host) TokenFile(role string) string { return filepath.Join(h.home.dir, "token-"+role) }

// writeTokens writes a token for each person and keeps writing new ones well before they expire.
func (h *Host) writeTokens(ctx context.Context) error {
	if err := h.renewTokens(ctx); err != nil {
		return err
	}
	b := newBackground()
	h.onStop(b.stop)
	b.run(func(ctx context.Context) {
		every(ctx, issuer.Lifetime/3, time.Now, func() error {
			err := h.renewTokens(ctx)
			if err != nil {
				h.log.ErrorContext(ctx, "tokens were not renewed", "error", err.Error())
			}
			return err
		})
	})
	return nil
}

// glance is how often the clock is looked at, and so how long tokens may have expired after the machine has slept.
const glance = 10 * time.Second

// every calls do each time that the period has passed by the wall clock, until ctx ends. Tokens expire by that clock,
// which runs while the machine sleeps; timers do not. do is called at once when the clock was set back, and at the next
// glance when it failed.
func every(ctx context.Context, period time.Duration, now func() time.Time, do func() error) {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	next := now().Round(0).Add(period) // Round takes the reading of the clock that stands still away
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if left := next.Sub(now()); 0 < left && left <= period {
			continue
		}
		if do() == nil {
			next = now().Round(0).Add(period)
		}
	}
}

func (h *Host) renewTokens(ctx context.Context) error {
	for _, person := range issuer.People() {
		token, _, err := h.issuer.Token(ctx, person.ID)
		if err != nil {
			return err
		}
		if err := durable.WriteFile(h.TokenFile(person.ID), []byte(token+"\n"), 0o600); err != nil {
			return fmt.Errorf("token of %s: %w", person.ID, err)
		}
	}
	return nil
}
