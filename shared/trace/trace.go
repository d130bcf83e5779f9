// Package trace carries through a context which trace the work belongs to, and what caused it.
//
// The trace is a W3C Trace Context parent (https://www.w3.org/TR/trace-context/). It travels from the HTTP request into
// the outbox row, from there as a CloudEvents extension to each reaction, and so to the last effect. The cause, the
// caller or the event, is what history rows name.
package trace

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
)

type contextKey struct{}

type value struct {
	parent string // the traceparent of this span, "" outside a trace
	above  string // the span that this one is a part of, "" for the first of a trace
	state  string // tracestate, which others put there
	cause  string
}

const (
	zeroTrace = "00000000000000000000000000000000"
	zeroSpan  = "0000000000000000"
	maxState  = 512 // bytes of a tracestate that must be handed on
)

// Start returns ctx with a span of its own in the trace of parent, sampled as parent is; a missing or malformed parent
// starts a new trace.
func Start(ctx context.Context, parent string) context.Context {
	v := of(ctx)
	v.above, v.state = "", ""
	id, flags := newID(16), "01"
	if valid(parent) {
		id, v.above = parent[3:35], parent[36:52]
		if hexDigit(parent[54])&1 == 0 {
			flags = "00"
		}
	}
	v.parent = "00-" + id + "-" + newID(8) + "-" + flags
	return context.WithValue(ctx, contextKey{}, v)
}

// valid reports whether parent has the form of version 00; a later version begins with it.
func valid(parent string) bool {
	if len(parent) < 55 || parent[2] != '-' || parent[35] != '-' || parent[52] != '-' || parent[:2] == "ff" {
		return false
	}
	if len(parent) > 55 && (parent[:2] == "00" || parent[55] != '-') {
		return false
	}
	for _, part := range []string{parent[:2], parent[3:35], parent[36:52], parent[53:55]} {
		for i := range len(part) {
			if hexDigit(part[i]) < 0 {
				return false
			}
		}
	}
	return parent[3:35] != zeroTrace && parent[36:52] != zeroSpan
}

// hexDigit returns the value of a digit in lower case, -1 for anything else.
func hexDigit(c byte) int { return strings.IndexByte("0123456789abcdef", c) }

// WithState returns ctx with the tracestate that came with the parent. One that is too long or not printable is left
// out.
func WithState(ctx context.Context, state string) context.Context {
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	if state == "" || len(state) > maxState || strings.ContainsFunc(state, unprintable) {
		return ctx
	}
	v := of(ctx)
	v.state = state
	return context.WithValue(ctx, contextKey{}, v)
}

// WithCause returns ctx in which history rows name cause, e.g. "caller alice" or "event 0198c2...".
func WithCause(ctx context.Context, cause string) context.Context {
	v := of(ctx)
	v.cause = cause
	return context.WithValue(ctx, contextKey{}, v)
}

// WithSampled returns ctx with the span sampled or not: whoever takes part in the trace from here on does as it says.
func WithSampled(ctx context.Context, sampled bool) context.Context {
	v := of(ctx)
	if v.parent == "" || sampled == Sampled(ctx) {
		return ctx
	}
	v.parent = v.parent[:53] + "00"
	if sampled {
		v.parent = v.parent[:53] + "01"
	}
	return context.WithValue(ctx, contextKey{}, v)
}

// Parent returns the traceparent to hand on, or "" outside a trace.
func Parent(ctx context.Context) string { return of(ctx).parent }

// State returns the tracestate to hand on, mostly "".
func State(ctx context.Context) string { return of(ctx).state }

// ID returns the trace id, 32 hex digits, or "" outside a trace.
func ID(ctx context.Context) string {
	if p := of(ctx).parent; p != "" {
		return p[3:35]
	}
	return ""
}

// Span returns the id of the span, 16 hex digits, or "" outside a trace.
func Span(ctx context.Context) string {
	if p := of(ctx).parent; p != "" {
		return p[36:52]
	}
	return ""
}

// Above returns the id of the span that this one is a part of, "" for the first of a trace.
func Above(ctx context.Context) string { return of(ctx).above }

// Sampled reports whether the trace is to be kept.
func Sampled(ctx context.Context) bool {
	p := of(ctx).parent
	return p != "" && p[54] == '1'
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
