// Package trace carries through a context which trace the work belongs to and what caused it.
//
// The trace is a W3C Trace Context parent (https://www.w3.org/TR/trace-context/); it travels from the HTTP request into
// the outbox row, from there as a CloudEvents extension to each reaction, and so to the last effect. The cause is what
// history rows name: the caller or the event.
package trace

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"regexp"
)

type contextKey struct{}

type value struct{ parent, cause string }

var parentForm = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$`)

const (
	zeroTrace = "00000000000000000000000000000000"
	zeroSpan  = "0000000000000000"
)

// Start returns ctx with a span of its own in the trace of parent; a missing or malformed parent starts a new trace.
func Start(ctx context.Context, parent string) context.Context {
	v := of(ctx)
	id := newID(16)
	if m := parentForm.FindStringSubmatch(parent); m != nil && m[1] != zeroTrace && m[2] != zeroSpan {
		id = m[1]
	}
	v.parent = "00-" + id + "-" + newID(8) + "-01"
	return context.WithValue(ctx, contextKey{}, v)
}

// WithCause returns ctx in which history rows name cause, e.g. "caller alice" or "event 0198c2...".
func WithCause(ctx context.Context, cause string) context.Context {
	v := of(ctx)
	v.cause = cause
	return context.WithValue(ctx, contextKey{}, v)
}

// Parent returns the traceparent to hand on, or "" outside a trace.
func Parent(ctx context.Context) string { return of(ctx).parent }

// ID returns the trace id, 32 hex digits, or "" outside a trace.
func ID(ctx context.Context) string {
	if p := of(ctx).parent; p != "" {
		return p[3:35]
	}
	return ""
}

// Cause returns what WithCause set.
func Cause(ctx context.Context) string { return of(ctx).cause }

func of(ctx context.Context) value {
	v, _ := ctx.Value(contextKey{}).(value)
	return v
}

func newID(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails since Go 1.24
	return hex.EncodeToString(b)
}
