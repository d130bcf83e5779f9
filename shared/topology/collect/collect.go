// Package collect makes the topology from telemetry. ../METRICS.md is its contract: which metric and label feeds which
// key.
//
// All queries are evaluated at the same instant, combined into few calls. If one fails, the keys it feeds are missing,
// and a warning names it. If one of the essential queries fails, which say what clusters and nodes exist, there is no
// topology at all: an empty one would claim that everything is gone.
package collect

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry"
	"github.com/littoral-project/littoral/shared/topology"
)

// Config is read from the environment by envconfig.
type Config struct {
	telemetry.Config
	topology.Freshness
	QueryTimeout time.Duration `envconfig:"QUERY_TIMEOUT" default:"20s"`      // of all queries together; few callers wait for them
	Lookback     time.Duration `envconfig:"TELEMETRY_LOOKBACK" default:"30m"` // how long a silent node is shown
}

// Collector makes taxonomies.
type Collector struct {
	config Config
	client *telemetry.Client
}

// New returns a Collector that has not dialled yet.
func New(c Config, h *http.Client) (*Collector, error) {
	switch {
	case c.QueryTimeout <= 0:
		return nil, errors.New("QUERY_TIMEOUT must be positive")
	case c.StaleAfter <= 0:
		return nil, errors.New("STALE_AFTER must be positive")
	case c.Lookback < c.StaleAfter:
		return nil, errors.New("TELEMETRY_LOOKBACK must be at least STALE_AFTER, or lost nodes would never be seen")
	}
	client, err := telemetry.New(c.Config, h)
	if err != nil {
		return nil, err
	}
	return &Collector{config: c, client: client}, nil
}

// Picture is the topology at one moment, as telemetry has it.
type Picture struct {
	Taxonomy *topology.Taxonomy
	At       time.Time

	failed   []query // failed queries, whose keys are missing only for that reason
	lookback time.Duration
}

// Collect returns the topology as of now. The error is Unavailable when telemetry cannot say what clusters and nodes
// exist.
func (c *Collector) Collect(ctx context.Context, now time.Time) (*Picture, error) {
	asked := queries(c.config.StaleAfter, c.config.Lookback)
	expressions := make(map[string]string, len(asked))
	for _, q := range asked {
		expressions[q.name] = q.expression
	}
	answers := c.client.AskTogether(ctx, expressions, now, c.config.QueryTimeout)

	b := newBuilder(now, c.config.StaleAfter, answers)
	p := &Picture{At: now, lookback: c.config.Lookback}
	var missing []string
	var cause error
	for _, q := range asked {
		for _, warning := range answers[q.name].Warnings {
			b.doubt("the telemetry store warns: " + warning)
		}
		err := answers[q.name].Err
		if err == nil {
			continue
		}
		if q.essential {
			missing, cause = append(missing, q.name), errors.Join(cause, err)
		}
		p.failed = append(p.failed, q)
		b.warn("the query for %s failed: %s", q.name, detail(err))
	}
	if missing != nil {
		return nil, problem.Wrap(problem.Unavailable, cause, "telemetry cannot say what there is; without an answer: %s",
			strings.Join(missing, ", "))
	}
	p.Taxonomy = b.build()
	return p, nil
}

// detail is what a warning may show of an error: the sentence, not the cause with its addresses.
func detail(err error) string {
	var e *problem.Error
	if errors.As(err, &e) {
		return e.Detail
	}
	return "for an unknown reason"
}

// Complete takes over from the topology before what this one cannot know: the keys of failed queries, nodes that
// telemetry forgot (it may have been restarted empty) but that were seen within the lookback, and names. Otherwise a
// failing query would look like nodes that lost their capacity or were put back into service, and a renamed live node
// like a silent one.
func (p *Picture) Complete(before *topology.Taxonomy) {
	silent := &p.Taxonomy.Timestamp.SilentUntil
	if was, known := before.Timestamp.SilentUntil.Get(); known {
		*silent = topology.Known(max(was, silent.Or(was)))
	}
	type site struct{ uuid, by string }
	anew := map[site]bool{}
	for _, c := range p.Taxonomy.Cluster {
		anew[site{c.UUID, c.Name}], anew[site{c.UUID, c.AgentID}] = true, true
	}
	for key, was := range before.Cluster {
		now, known := p.Taxonomy.Cluster[key]
		switch {
		case known:
		case was.UUID != "" && (anew[site{was.UUID, was.Name}] || anew[site{was.UUID, was.AgentID}]):
			continue // its agent was registered again, or renamed
		default:
			now = was
			now.Node, now.Pod = nil, nil
		}
		now.Node = p.completeNodes(now.Node, was.Node)
		for _, q := range p.failed {
			if q.name == qVnet {
				now.ClusterLink = was.ClusterLink
			}
		}
		if known || len(now.Node) > 0 {
			p.Taxonomy.Cluster[key] = now
		}
	}
	p.retainNames(before)
}

// retainNames keeps the names of clusters, even if telemetry no longer has them, or if other clusters claim them now.
func (p *Picture) retainNames(before *topology.Taxonomy) {
	clusters, called := p.Taxonomy.Cluster, before.ClusterNames()
	holder := map[string]string{} // by name
	for key, c := range clusters {
		if name, known := called[key]; known && c.Name == key && c.Type == before.Cluster[key].Type {
			c.Name = name
			clusters[key] = c
		}
		if called[key] == c.Name {
			holder[c.Name] = key
		}
	}
	for key, c := range clusters {
		if by, held := holder[c.Name]; held && by != key {
			c.Name = key
			clusters[key] = c
		}
	}
}

// retainHolders gives a node its key back that another live node of the same name has taken: which of the two was heard
// of last may alternate.
func retainHolders(now, before map[string]topology.Node) {
	for key, was := range before {
		taker, holder := now[key], now[was.UUID]
		if was.UUID != "" && holder.UUID == was.UUID && holder.Name == taker.Name &&
			taker.UUID != "" && taker.UUID != was.UUID {
			now[key], now[taker.UUID] = holder, taker
			delete(now, was.UUID)
		}
	}
}

func (p *Picture) completeNodes(now, before map[string]topology.Node) map[string]topology.Node {
	retainHolders(now, before)
	all := map[string]topology.Node{}
	taken := map[string]bool{}
	for key, n := range now {
		if old, known := before[key]; known {
			for _, q := range p.failed {
				if q.retain != nil {
					q.retain(&n, &old)
				}
			}
		}
		all[key] = n
		taken[key], taken[n.Name], taken[n.UUID] = true, true, true
	}
	for key, old := range before {
		seen, dated := old.SeenAt()
		// A node that is listed under another key is not forgotten.
		if dated && p.At.Sub(seen) <= p.lookback && !taken[key] && !taken[old.Name] && (old.UUID == "" || !taken[old.UUID]) {
			all[key] = old
		}
	}
	return all
}
