package placement

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// request is a component's requirements, normalised for comparison.
type request struct {
	*Component
	engines, orchestrators, shared []string // lower case
	architecture                   string   // canonical
	devices                        map[string]int64
	staleAfter                     time.Duration
	asks                           []constraint // those that can fail, without cpu and memory
}

func newRequest(c *Component, staleAfter time.Duration) *request {
	r := &request{
		Component: c, engines: lower(c.Engines), orchestrators: lower(c.Orchestrators), shared: lower(c.Shared),
		architecture: CanonicalArchitecture(c.Architecture), staleAfter: staleAfter,
	}
	if len(c.Devices) > 0 {
		r.devices = make(map[string]int64, len(c.Devices))
		for _, d := range c.Devices {
			r.devices[d]++
		}
	}
	for _, k := range constraints {
		if k != constraint(cpu{}) && k != constraint(memory{}) && k.applies(r) {
			r.asks = append(r.asks, k)
		}
	}
	return r
}

func lower(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = strings.ToLower(s)
	}
	return out
}

func allows(allowed []string, s string) bool { return len(allowed) == 0 || slices.Contains(allowed, s) }

// The functions below append values to a key; no two different lists of values give the same text.

func appendStrings(b []byte, ss []string) []byte {
	for _, s := range ss {
		b = strconv.AppendQuote(b, s)
	}
	return b
}

func appendTargets(b []byte, ts []Target) []byte {
	for _, t := range ts {
		b = appendStrings(append(b, '{'), []string{t.Orchestrator, t.Cluster, t.Node})
		b = append(b, '}')
	}
	return b
}

func appendInt(b []byte, v int64) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendInt(b, v, 10)
}

func appendFloat(b []byte, v float64) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}
