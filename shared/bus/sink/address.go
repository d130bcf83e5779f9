package sink

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/keyexpr"
)

// Address is where a broker is, what it is sent and how: "mqtts://user:password@host:8883/prefix?select=*/web".
type Address struct {
	URL    *url.URL
	Prefix string // before each key, with a "/" at its end; "" = none

	name      string
	selection keyexpr.Expr
}

// ParseAddress reads an address. Without a selection it stands for all keys.
func ParseAddress(text string) (Address, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Host == "" {
		return Address{}, fmt.Errorf("a sink is an address such as mqtts://user:password@host:8883/prefix") // the error would show the password
	}
	a := Address{URL: u, Prefix: strings.Trim(u.Path, "/")}
	if a.Prefix != "" {
		if _, err := keyexpr.ParseKey(a.Prefix); err != nil {
			return Address{}, fmt.Errorf("the path of the sink %s: %w", u.Redacted(), err)
		}
		a.Prefix += "/"
	}
	query := u.Query()
	if a.selection, err = keyexpr.Parse(cmp.Or(query.Get("select"), "**")); err != nil {
		return Address{}, fmt.Errorf("select of the sink %s: %w", u.Redacted(), err)
	}
	for parameter := range query {
		if parameter != "select" {
			return Address{}, fmt.Errorf("the sink %s has a parameter %q; there is select only", u.Redacted(), parameter)
		}
	}
	shown := *u
	shown.User = nil
	a.name = shown.String()
	return a, nil
}

// Name is the address without user and password.
func (a Address) Name() string { return a.name }

// Selection says which keys it is sent.
func (a Address) Selection() keyexpr.Expr { return a.selection }

// atOnce is how many values are under way to a broker.
const atOnce = 16

// Each calls send for each of the values, of some at the same time, and returns the first error.
func Each(ctx context.Context, values []bus.Value, send func(context.Context, bus.Value) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, v := range values {
		group.Go(func() error { return send(ctx, v) })
	}
	return group.Wait()
}
