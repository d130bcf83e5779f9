// Package gather reads from telemetry what was measured between nodes. Probes, NetMA of CODECO and generators write one metric
// for each figure, with the labels source_node and target_node; the exporter of L2S-M writes one for each link, with the names of
// both nodes in the name of the metric, and says no unit: it is taken for that of the others.
package gather

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// Config is read from the environment.
type Config struct {
	telemetry.Config
	QueryTimeout time.Duration `envconfig:"QUERY_TIMEOUT" default:"20s"`
}

// Gatherer asks a Prometheus.
type Gatherer struct {
	config Config
	client *telemetry.Client
}

// Open reads the settings and dials nothing.
func Open(config func(into any) error, client *http.Client) (*Gatherer, error) {
	var c Config
	if err := config(&c); err != nil {
		return nil, err
	}
	t, err := telemetry.New(c.Config, client)
	return &Gatherer{c, t}, err
}

// former are the beginnings of the names that the exporter of L2S-M makes.
var former = map[string]string{"net_rtt_": "net_rtt_ms", "net_jitter_": "net_jitter_ms", "net_throughput_": "net_throughput_kbps"}

const inNames = "former"

// Gather returns the present figures of all links. The error is Unavailable when nothing answers.
func (g *Gatherer) Gather(ctx context.Context, now time.Time) ([]links.Measurement, error) {
	queries := map[string]string{inNames: `{__name__=~"net_(rtt|jitter|throughput)_.+:.+"}`}
	for _, name := range links.Metrics() {
		queries[name] = fmt.Sprintf("max by (source_node, target_node) (%s)", name)
	}
	answers := g.client.Ask(ctx, queries, now, g.config.QueryTimeout)
	found := map[[2]string]*links.Figures{}
	set := func(metric, source, target string, value float64) {
		if v := links.Known(value); v != nil && source != "" && target != "" && source != target {
			at := [2]string{source, target}
			if found[at] == nil {
				found[at] = &links.Figures{}
			}
			*found[at].Of(metric) = v
		}
	}
	failed := 0
	var cause error
	for name, answer := range answers {
		if answer.Err != nil {
			failed, cause = failed+1, answer.Err
			continue
		}
		for _, s := range answer.Samples {
			if name != inNames {
				set(name, s.Labels["source_node"], s.Labels["target_node"], s.Value)
			} else if metric, source, target := split(s.Labels["__name__"]); metric != "" {
				set(metric, source, target, s.Value)
			}
		}
	}
	if failed == len(queries) {
		return nil, problem.Wrap(problem.Unavailable, cause, "the telemetry store does not answer: %v", cause)
	}
	all := make([]links.Measurement, 0, len(found))
	for _, at := range slices.SortedFunc(maps.Keys(found), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		all = append(all, links.Measurement{Source: at[0], Target: at[1], Figures: *found[at], MeasuredAt: now})
	}
	return all, nil
}

// split reads net_rtt_a:b.
func split(name string) (metric, source, target string) {
	for prefix, metric := range former {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			source, target, _ := strings.Cut(rest, ":")
			return metric, source, target
		}
	}
	return "", "", ""
}
