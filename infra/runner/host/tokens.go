package host

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"time"

	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/shared/durable"
)

// TokenFile is the file with the access token of a role, which is kept fresh while the host runs.
func (h *Host) TokenFile(role string) string { return filepath.Join(h.home.dir, "token-"+role) }

// PasswordFile is the file with the password of a user of the issuer.
func (h *Host) PasswordFile(user string) string { return filepath.Join(h.home.dir, "password-"+user) }

// writePasswords writes what people sign in with.
func (h *Host) writePasswords() error {
	for _, user := range issuer.Users() {
		if err := durable.WriteFile(h.PasswordFile(user.Name), []byte(h.issuer.Password(user.Name)+"\n"), 0o600); err != nil {
			return fmt.Errorf("password of %s: %w", user.Name, err)
		}
	}
	return nil
}

// sameHost lists the base URLs by which a browser on this machine may find the host: it may be asked by any name of the
// loopback interface, and must be sent back to the same one, where its cookies are.
func sameHost(base string) []string {
	u, err := url.Parse(base)
	if err != nil {
		return []string{base}
	}
	all := []string{base}
	for _, name := range []string{"127.0.0.1", "localhost", "::1"} {
		if other := "http://" + net.JoinHostPort(name, u.Port()); other != base {
			all = append(all, other)
		}
	}
	return all
}

// writeTokens writes a token for each person, and renews them well before they expire.
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

// glance is how often the clock is checked. After the machine has slept, tokens may be expired for that long.
const glance = 10 * time.Second

// every calls do each time that the period has passed by the wall clock, until ctx ends. Tokens expire by the wall
// clock, which continues while the machine sleeps; timers do not. do is called at the next check if the clock was set
// back or if it failed.
func every(ctx context.Context, period time.Duration, now func() time.Time, do func() error) {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	next := now().Round(0).Add(period) // Round removes the monotonic reading, which stops while the machine sleeps
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
