package host

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/littoral-project/littoral/infra/runner/durable"
	"github.com/littoral-project/littoral/infra/runner/issuer"
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
		tick := time.NewTicker(issuer.Lifetime / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := h.renewTokens(ctx); err != nil {
				h.log.ErrorContext(ctx, "tokens were not renewed", "error", err.Error())
			}
		}
	})
	return nil
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
