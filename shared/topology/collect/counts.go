package collect

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// maxAgents is up to how many agents are counted apart. Where each node has its own, one number each would be as much as the nodes.
const maxAgents = 1000

// counts are how many series a look has seen, by probe and agent, and of qCPUs a number that is equal only for the same cpus on the same
// hosts. They are stored with the look, so that the next one need not ask telemetry what was then.
type counts struct {
	apart bool // by agent; otherwise all are of the agent ""
	of    map[string]map[string]int64
}

// storedCounts are counts as a document. Of most agents there are as many kinds of series, so the agents are named once.
type storedCounts struct {
	Version int64              `json:"version"`
	Apart   bool               `json:"apart,omitempty"`
	Agents  []string           `json:"agents"`
	Of      map[string][]int64 `json:"of"`
}

func (c *counts) encode() ([]byte, error) {
	agents := map[string]bool{}
	for _, by := range c.of {
		for agent := range by {
			agents[agent] = true
		}
	}
	s := storedCounts{
		Version: countsVersion(c.apart), Apart: c.apart, Agents: slices.Sorted(maps.Keys(agents)), Of: make(map[string][]int64, len(c.of)),
	}
	for name, by := range c.of {
		all := make([]int64, len(s.Agents))
		for i, agent := range s.Agents {
			all[i] = by[agent]
		}
		s.Of[name] = all
	}
	body, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode what was counted: %w", err)
	}
	return body, nil
}

// decodeCounts returns nil for what is nothing to compare with: none, or of a version that counted otherwise.
func decodeCounts(body []byte) *counts {
	var s storedCounts
	if body == nil || json.Unmarshal(body, &s) != nil || s.Version != countsVersion(s.Apart) {
		return nil
	}
	c := &counts{s.Apart, make(map[string]map[string]int64, len(s.Of))}
	for name, all := range s.Of {
		if len(all) != len(s.Agents) {
			return nil
		}
		c.of[name] = make(map[string]int64, len(all))
		for i, agent := range s.Agents {
			c.of[name][agent] = all[i]
		}
	}
	return c
}

// countsVersion is another one whenever something else is counted.
func countsVersion(apart bool) int64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %d\n", cpusOfHosts, seriesOf([5]string{"a", "b", "c", "d", "e"}))
	for _, p := range probes(time.Minute, time.Minute, apart) {
		_, _ = fmt.Fprintf(h, "%s: %s\n", p.name, p.now)
	}
	return int64(h.Sum64()) // any 64 bits
}

// grouped is how an aggregation tells agents apart.
func grouped(apart bool) string {
	if apart {
		return " by (" + label.Agent + ") "
	}
	return ""
}

// add adds the elements of an answer to one count.
func (c *counts) add(name string, samples []telemetry.Sample) {
	by := map[string]int64{}
	for _, s := range samples {
		by[s.Labels[label.Agent]] += int64(s.Value)
	}
	c.of[name] = by
}

// cpusOfHosts counts what makes qCPUs. Of the same cpu there may be several series for some minutes, which is no harm here.
var cpusOfHosts = perHost("count", of(qCPUSeconds, onlyIdle))

// addCPUs asks how many cpus each host has. A cpu that one host has lost and another one got is seen so, other than by counts of
// series by agent, and telemetry need not read the series of cpus, which are most of all, over a time.
func (c *counts) addCPUs(ctx context.Context, client *telemetry.Client, at time.Time) error {
	by := map[string]int64{}
	err := client.Each(ctx, cpusOfHosts, at, func(r *telemetry.Row) {
		agent := ""
		if c.apart {
			agent = string(r.Label(label.Agent))
		}
		h := (uint64(seriesOfRow(r)) ^ uint64(r.Value)) * prime
		by[agent] += int64((h ^ h>>29) * prime) // any 64 bits; of a sum the order does not matter
	})
	c.of[qCPUs] = by
	return err
}

// count counts all that a look compares with, as a document. It is done before anything else is asked: what comes late then is news for
// the next look. Nil if telemetry does not answer, so that the next look is of all nodes again.
func (c *Collector) count(ctx context.Context, at time.Time) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.QueryTimeout/2)
	defer cancel()
	agents, err := c.client.Query(ctx, fmt.Sprintf("count(count by (%s) (%s or %s))", label.Agent, qHost, qUname), at)
	if err != nil {
		return nil, nil
	}
	now := &counts{len(agents) == 1 && agents[0].Value <= maxAgents, map[string]map[string]int64{}}
	asked := map[string]string{}
	all := probes(time.Minute, time.Minute, now.apart)
	for _, p := range all {
		if p.now != "" {
			asked[p.now] = p.now
		}
	}
	answers, err := c.client.AskAll(ctx, asked, at, c.config.QueryTimeout/2)
	if err != nil || now.addCPUs(ctx, c.client, at) != nil {
		return nil, nil
	}
	for _, p := range all {
		if p.now != "" {
			now.add(p.name, answers[p.now])
		}
	}
	return now.encode()
}

// differs reports whether of this probe other series were counted of the agent.
func (c *counts) differs(from *counts, name, agent string) bool {
	return c.of[name][agent] != from.of[name][agent]
}
