package view

import (
	"cmp"
	"math"
	"slices"
)

// Metric is a kind of cost.
type Metric struct {
	Name        string // as ALTO has it: registered ones bare, others with priv:
	Description string
	Best        Direction // which costs are preferred
	of          func(c *costs, pair int) float32
	figure      string // of links that it is made of, by its name in telemetry; empty: none that changes
}

// Direction says whether less or more is better.
type Direction int

// The directions.
const (
	Least Direction = iota
	Most
)

// Metrics are all kinds of costs. Those without a prefix are registered by RFC 7285 and RFC 9439, with its units: microseconds,
// percent, bytes per second.
func Metrics() []Metric {
	return []Metric{
		{"routingcost", "one-way latency in ms, and 0.01 for each link", Least, func(c *costs, i int) float32 { return c.latency[i] + 0.01*c.hops[i] }, "net_rtt_ms"},
		{"hopcount", "links of the way", Least, func(c *costs, i int) float32 { return c.hops[i] }, ""},
		{"delay-ow", "one-way latency, µs", Least, func(c *costs, i int) float32 { return c.latency[i] * 1000 }, "net_rtt_ms"},
		{"delay-rt", "round trip, µs", Least, func(c *costs, i int) float32 { return c.rtt[i] * 1000 }, "net_rtt_ms"},
		{"delay-variation", "jitter, µs", Least, func(c *costs, i int) float32 { return c.jitter[i] * 1000 }, "net_jitter_ms"},
		{"lossrate", "percent of packets", Least, func(c *costs, i int) float32 { return c.loss[i] }, "net_loss_percent"},
		{"tput", "of one TCP connection, bytes per second", Most, func(c *costs, i int) float32 { return c.tput[i] * 125 }, "net_throughput_kbps"},
		{"bw-available", "of the narrowest link, bytes per second", Most, func(c *costs, i int) float32 { return c.bandwidth[i] * 125 }, "net_bandwidth_kbps"},
		{"priv:net_rtt_ms", "round trip, ms", Least, func(c *costs, i int) float32 { return c.rtt[i] }, "net_rtt_ms"},
		{"priv:jitter", "ms", Least, func(c *costs, i int) float32 { return c.jitter[i] }, "net_jitter_ms"},
		{"priv:bandwidth", "of the narrowest link, kbit/s", Most, func(c *costs, i int) float32 { return c.bandwidth[i] }, "net_bandwidth_kbps"},
		{"priv:energy", "what the target and measured links draw, W", Least, func(c *costs, i int) float32 { return c.energy[i] }, "net_link_energy_watts"},
	}
}

// MetricOf finds a metric by its name; private ones also without their prefix, as CODECO writes them.
func MetricOf(name string) (Metric, bool) {
	for _, m := range Metrics() {
		if m.Name == name || m.Name == "priv:"+name {
			return m, true
		}
	}
	return Metric{}, false
}

// Costs returns the costs between two places, and whether they are known.
func (v *View) Costs(m Metric) func(from, to int) (float64, bool) {
	c := v.all()
	return func(from, to int) (float64, bool) {
		value := m.of(c, from*c.n+to)
		return float64(value), value == value // not NaN
	}
}

// Ranks returns the places of costs among all of their metric, from 1 for the best; equal costs have one rank.
func (v *View) Ranks(m Metric) func(from, to int) (float64, bool) {
	ranks, n := v.ranksOf(m), v.all().n
	return func(from, to int) (float64, bool) {
		rank := ranks[from*n+to]
		return float64(rank), rank > 0
	}
}

// ranksOf returns the ranks of all pairs; 0 where the cost is not known.
func (v *View) ranksOf(m Metric) []int32 {
	v.ranking.Lock()
	defer v.ranking.Unlock()
	if known, ok := v.ranks[m.Name]; ok {
		return known
	}
	c := v.all()
	values := make([]float32, c.n*c.n)
	pairs := make([]int32, 0, len(values))
	for i := range values {
		if values[i] = m.of(c, i); values[i] == values[i] {
			pairs = append(pairs, int32(i))
		}
	}
	slices.SortFunc(pairs, func(a, b int32) int {
		if m.Best == Most {
			a, b = b, a
		}
		return cmp.Compare(values[a], values[b])
	})
	out := make([]int32, len(values))
	rank := int32(0)
	for k, pair := range pairs {
		if k == 0 || values[pair] != values[pairs[k-1]] {
			rank++
		}
		out[pair] = rank
	}
	v.ranks[m.Name] = out
	return out
}

// costs are of all pairs, by source and target; NaN is unknown. Milliseconds, percent, kbit/s, watts.
type costs struct {
	n                                                         int
	latency, hops, rtt, jitter, loss, bandwidth, tput, energy []float32
}

var unknown = float32(math.NaN())

func newCosts(n int) *costs {
	c := &costs{n: n}
	for _, field := range []*[]float32{&c.latency, &c.hops, &c.rtt, &c.jitter, &c.loss, &c.bandwidth, &c.tput, &c.energy} {
		*field = slices.Repeat([]float32{unknown}, n*n)
	}
	return c
}

func (v *View) all() *costs {
	v.once.Do(func() { v.costs = v.graph.costs(v) })
	return v.costs
}
