package collect

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry"
	"github.com/littoral-project/littoral/shared/topology"
)

// Open returns the Collector for the settings that config reads. It has not dialled yet.
func Open(config func(into any) error, client *http.Client) (*Collector, error) {
	var c Config
	if err := config(&c); err != nil {
		return nil, err
	}
	return New(c, client)
}

// chunk is how many nodes are asked about at once: it bounds memory, not how many nodes there may be. The nodes of one
// cluster stay together.
const chunk = 1000

// Refresh collects the topology and stores it, which announces changes. Doing so twice is harmless: a topology that is not
// newer than the stored one is dropped. The error is that of Collect or of the store; then nothing is changed.
//
// What it costs is in proportion to what has changed: it asks of every node when that was heard of and how busy it is,
// and beyond that only about nodes of which telemetry says that something is other than at the refresh before. All nodes
// are asked about at the first refresh, every few minutes, after a pause and after a query that failed.
func (c *Collector) Refresh(ctx context.Context, db *store.DB) (changed bool, err error) {
	return c.RefreshAt(ctx, db, time.Now())
}

// RefreshAt is Refresh at that time.
func (c *Collector) RefreshAt(ctx context.Context, db *store.DB, now time.Time) (changed bool, err error) {
	outline, err := topology.ReadOutline(ctx, db)
	if err != nil && !errors.Is(err, topology.ErrUnknown) {
		return false, err
	}
	var last *counts
	if err == nil {
		last = c.comparable(outline, now)
	}
	if last == nil {
		return c.refresh(ctx, db, nil, nil, now)
	}
	g := c.glance(ctx, outline, last, now)
	if g == nil || !g.quiet() {
		return c.refresh(ctx, db, g, outline, now)
	}
	return false, db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return topology.Touch(ctx, tx, &g.news) })
}

// refresh asks which nodes there are, and about those that the glance names and new ones; about all without a glance. o is
// what the glance was compared with.
func (c *Collector) refresh(
	ctx context.Context, db *store.DB, g *glance, o *topology.Outline, now time.Time,
) (changed bool, err error) {
	var seen []byte
	if g != nil {
		seen = g.news.Counts
	} else if seen, err = c.count(ctx, now); err != nil {
		return false, err
	}
	deadline := time.Now().Add(c.config.QueryTimeout)
	before, err := topology.ReadKnown(ctx, db)
	if err != nil {
		return false, err
	}
	if g != nil && !before.At.Equal(o.At) {
		return false, nil // somebody else has looked meanwhile
	}
	if g != nil && g.same() && before.Identified {
		l := c.pass(before, now, deadline)
		l.counts = seen
		if changed, ok, err := l.again(ctx, db, g); ok || err != nil {
			return changed, err
		}
	}
	if err := before.ReadAll(ctx, db); err != nil {
		return false, err
	}
	asked := identifying(c.config.StaleAfter, c.config.Lookback)
	if g != nil {
		asked = identifyingSince(now.Sub(o.At), c.config.StaleAfter, c.config.Lookback)
	} else {
		asked = append(asked, scanning(c.config.Lookback, scope{})...)
	}
	l := c.pass(before, now, deadline)
	l.counts = seen
	if err := l.ask(ctx, asked); err != nil {
		return false, err
	}
	if g != nil && !l.b.remember(o) {
		if err := l.ask(ctx, []query{{qSeen, newest(c.config.StaleAfter, c.config.Lookback), true, nil}}); err != nil {
			return false, err
		}
	}
	l.b.identify()
	l.p.Taxonomy = l.b.taxonomy()
	plain := len(l.p.Taxonomy.Warnings) == 0
	l.b.doubts, l.b.warnings = map[string]int{}, nil // of what follows
	if g == nil {
		l.b.addScores()
		l.doubts = l.b.sortedWarnings()
	}
	l.b.release(asked)
	l.p.Complete(l.before.Taxonomy)
	l.identified = plain && l.b.foundAgain(l.p.Taxonomy)
	for _, made := range l.b.clusters { // the pods whose node is not known are asked for with all others only
		if c, listed := l.p.Taxonomy.Cluster[made.key]; listed {
			c.Pod = l.before.Cluster[made.key].Pod
			l.p.Taxonomy.Cluster[made.key] = c
		}
	}
	chunks := l.divide(g)
	for i, part := range chunks {
		if time.Now().After(deadline) {
			break // the next refresh begins with what was left out
		}
		news, err := l.part(ctx, db, g, part, i, len(chunks))
		if err != nil {
			return changed, err
		}
		changed = changed || news
	}
	return changed, nil
}

// remember adds when those were last heard of that are silent now, as it is stored. It returns false if of one that is not stored.
func (b *builder) remember(o *topology.Outline) bool {
	seen, stored := map[int64]bool{}, make(map[int64]float64, len(o.Nodes))
	for _, n := range o.Nodes {
		stored[n.Series] = n.Seen
	}
	heard := b.answers[qSeen]
	for _, s := range heard.Samples {
		seen[seriesOf(owner(s.Labels))] = true
	}
	for _, name := range []string{qHost, qUname} {
		for _, s := range b.answers[name].Samples {
			series := seriesOf(owner(s.Labels))
			if s.Labels[label.Agent] == self || seen[series] {
				continue
			}
			at, known := stored[series]
			if !known {
				return false
			}
			seen[series] = true
			named := map[string]string{}
			for _, key := range []string{label.Controller, label.Agent, label.Cluster, label.Host, label.HostName} {
				if value := s.Labels[key]; value != "" {
					named[key] = value
				}
			}
			heard.Samples = append(heard.Samples, telemetry.Sample{Labels: named, Value: at})
		}
	}
	b.answers[qSeen] = heard
	return true
}

// pass is one refresh in progress.
type pass struct {
	c        *Collector
	b        *builder
	p        *Picture
	before   *topology.KnownNodes
	deadline time.Time
	doubts   []string // warnings about what nodes are like
	failed   bool     // a query has
	counts   []byte   // as of topology.Part

	identified, alone bool // as of topology.Part
}

func (c *Collector) pass(before *topology.KnownNodes, now, deadline time.Time) *pass {
	return &pass{
		c: c, b: newBuilder(now, c.config.StaleAfter, map[string]telemetry.Answer{}), before: before, deadline: deadline,
		p: &Picture{At: now, lookback: c.config.Lookback},
	}
}

// place is one node to look at: what it is made of, and under which keys it is listed.
type place struct {
	*host         // nil if telemetry has forgotten it
	cluster, node string
	at            topology.Node
}

// ask adds answers. The error says that an essential query has failed.
func (l *pass) ask(ctx context.Context, asked []query) error {
	expressions := make(map[string]string, len(asked))
	for _, q := range asked {
		expressions[q.name] = q.expression
	}
	answers := l.c.client.AskTogether(ctx, expressions, l.b.now, max(time.Until(l.deadline), time.Second))
	for name, answer := range answers {
		l.b.answers[name] = answer
	}
	var missing []string
	var cause error
	for _, q := range asked {
		for _, warning := range answers[q.name].Warnings {
			l.b.doubt("the telemetry store warns: " + warning)
		}
		err := answers[q.name].Err
		if err == nil {
			continue
		}
		if q.essential {
			missing, cause = append(missing, q.name), errors.Join(cause, err)
		}
		l.p.failed, l.failed = append(l.p.failed, q), true
		l.b.warn("the query for %s failed: %s", q.name, detail(err))
	}
	if missing != nil {
		return problem.Wrap(problem.Unavailable, cause, "telemetry cannot say what there is; without an answer: %s",
			strings.Join(missing, ", "))
	}
	return nil
}

// divide finds the nodes to look at, and divides them into parts. Those that were not looked at for longest come first.
func (l *pass) divide(g *glance) [][]place {
	was := map[[2]string]topology.Place{}
	for _, p := range l.before.Places() {
		was[[2]string{p.ClusterKey, p.NodeKey}] = p
	}
	hosts := make(map[int64]*host, len(l.b.hosts))
	for _, h := range l.b.hosts {
		hosts[h.Series] = h
	}
	named := l.named(g)
	var all []place
	for _, now := range l.p.Taxonomy.Places() {
		key := [2]string{now.ClusterKey, now.NodeKey}
		old, known := was[key]
		same := known && old.Cluster == now.Cluster && old.Node == now.Node && old.At.Series == now.At.Series &&
			now.At.Lost(l.b.now, l.c.config.StaleAfter) == old.At.Lost(l.previousAt(), l.c.config.StaleAfter)
		h := hosts[now.At.Series]
		if h == nil && same && g != nil || g != nil && same && !g.ask[h.Series] && !named[h] {
			continue
		}
		all = append(all, place{h, now.ClusterKey, now.NodeKey, *now.At})
	}
	written := func(p place) time.Time { return l.before.Written[[2]string{p.cluster, p.node}] }
	oldest := map[string]time.Time{}
	for _, p := range all {
		if at, known := oldest[p.cluster]; !known || written(p).Before(at) {
			oldest[p.cluster] = written(p)
		}
	}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(oldest[a.cluster].Compare(oldest[b.cluster]), cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.node, b.node))
	})
	parts := [][]place{nil}
	for i, p := range all {
		last := len(parts) - 1
		if len(parts[last]) >= chunk && p.cluster != all[i-1].cluster {
			parts = append(parts, nil)
			last++
		}
		parts[last] = append(parts[last], p)
	}
	return parts
}

// previousAt is the time of the stored topology.
func (l *pass) previousAt() time.Time { return l.before.At }

// named finds the hosts of changed series.
func (l *pass) named(g *glance) map[*host]bool {
	all := map[*host]bool{}
	if g == nil {
		return all
	}
	scanned := l.b.scanned()
	for name, samples := range g.changed {
		for _, s := range samples {
			switch findBy(name) {
			case byScanner:
				all[scanned.find(s.Labels)] = true
			case byNode:
				all[l.b.nodeOf(s.Labels)] = true
			case byItsCluster:
				in := l.b.clusterOf(s.Labels)
				for _, h := range l.b.hosts {
					if h.in == in {
						all[h] = true
					}
				}
			case byItsHost:
				all[l.b.hostOf(s.Labels)] = true
			}
		}
	}
	delete(all, nil)
	return all
}

// by is by which of its labels a series finds nodes.
type by int

const (
	byNothing by = iota // it is about a cluster as a whole
	byScanner
	byNode
	byItsCluster // it may be about any node there
	byItsHost
)

func findBy(query string) by {
	switch query {
	case qScore, qVulnerable:
		return byScanner
	case qCapacity, qUnschedulable, qPod:
		return byNode
	case qOrch, qAgent, qVnet:
		return byNothing
	case qPhase, qContainer:
		return byItsCluster
	}
	return byItsHost
}

// part asks about some nodes and stores them.
func (l *pass) part(ctx context.Context, db *store.DB, g *glance, places []place, i, of int) (changed bool, err error) {
	b, before := l.b, l.before
	b.doubts, b.warnings = map[string]int{}, nil
	failed := len(l.p.failed)
	var asked []query
	if len(places) > 0 {
		s := scope{}
		switch {
		case g != nil:
			s = narrow(places)
		case of > 1:
			s = ofClusters(places)
		}
		asked = describing(l.c.config.Lookback, s)
		if g != nil {
			asked = append(scanning(l.c.config.Lookback, s), asked...)
		}
		if err := l.ask(ctx, asked); err != nil {
			return false, err
		}
		if g != nil {
			b.addScores()
		}
		b.describe()
	}
	l.doubts = append(l.doubts, b.sortedWarnings()...)
	b.release(asked)
	if err := l.put(ctx, db, g, places); err != nil {
		return false, err
	}
	part := &topology.Part{
		Nodes: make(map[[2]string]bool, len(places)), Doubts: l.doubts, WholeAt: before.WholeAt,
		Identified: l.identified, Alone: l.alone,
	}
	for _, p := range places {
		part.Nodes[[2]string{p.cluster, p.node}] = true
	}
	// Each part is newer than the one before. Those that are left out for lack of time are not counted either, so the next refresh is of all.
	moment := func(i int) time.Time {
		return l.p.At.Add(time.Duration(i) * time.Microsecond).UTC().Truncate(time.Microsecond)
	}
	if i+1 == of {
		part.Counts = l.counts
	}
	if g != nil {
		part.News, part.Since = &g.news, g.news.Since
		if i > 0 {
			part.Since = moment(i - 1)
		}
	}
	switch {
	case l.failed || g == nil && i+1 < of:
		part.WholeAt = topology.Measure{} // so the next refresh is of all
	case g == nil:
		part.WholeAt = topology.Known(float64(b.now.UnixMilli()) / 1000)
	}
	if g != nil || i+1 < of {
		part.Doubts = append(part.Doubts, before.Doubts...)
	}
	slices.Sort(part.Doubts)
	part.Doubts = slices.Compact(part.Doubts)
	taxonomy := *l.p.Taxonomy
	taxonomy.Warnings = slices.Concat(taxonomy.Warnings, part.Doubts)
	slices.Sort(taxonomy.Warnings)
	if taxonomy.Warnings = slices.Compact(taxonomy.Warnings); len(taxonomy.Warnings) == 0 {
		taxonomy.Warnings = nil
	}
	err = db.Tx(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		changed, err = topology.SavePart(ctx, tx, &taxonomy, moment(i), l.c.config.StaleAfter, part)
		return err
	})
	l.p.failed = l.p.failed[:failed]
	l.drop(places)
	return changed, err
}

// put puts what was found about the nodes into the picture.
func (l *pass) put(ctx context.Context, db *store.DB, g *glance, places []place) error {
	var load [][2]string
	for _, p := range places {
		if p.host == nil || len(l.p.failed) > 0 {
			load = append(load, [2]string{p.cluster, p.node})
		}
	}
	if len(load) > 0 {
		if err := l.before.Load(ctx, db, load); err != nil {
			return err
		}
	}
	for _, p := range places {
		c := l.p.Taxonomy.Cluster[p.cluster]
		old, known := l.before.Cluster[p.cluster].Node[p.node]
		n := old
		if p.host != nil {
			n = p.host.Node
			n.Engine = p.at.Engine
			for _, q := range l.p.failed {
				if known && q.retain != nil {
					q.retain(&n, &old)
				}
			}
			if g == nil {
				c.Pod = p.in.Pod
			}
		}
		c.Node[p.node] = n
		l.p.Taxonomy.Cluster[p.cluster] = c
	}
	return nil
}

// drop forgets what was found about the nodes, which is stored.
func (l *pass) drop(places []place) {
	for _, p := range places {
		l.p.Taxonomy.Cluster[p.cluster].Node[p.node] = p.at
		if p.host != nil {
			p.host.Node = p.at
		}
		if c, known := l.before.Cluster[p.cluster]; known {
			if old, known := c.Node[p.node]; known {
				c.Node[p.node] = topology.Node{
					Name: old.Name, UUID: old.UUID, Series: old.Series, Identity: old.Identity, LastSeen: old.LastSeen,
				}
			}
		}
	}
}

// release lets go of answers that were read; when nobody was heard of is told with each part.
func (b *builder) release(asked []query) {
	for _, q := range asked {
		if q.name != qSilence {
			delete(b.answers, q.name)
		}
	}
	b.seen = nil
}

// narrow limits queries to these nodes.
func narrow(places []place) scope {
	s := ofClusters(places)
	var ids, nodes, scanned []string
	for _, p := range places {
		if p.host == nil {
			continue
		}
		ids, nodes, scanned = append(ids, p.id), append(nodes, p.Name), append(scanned, p.hostname, p.Name)
	}
	if !slices.Contains(ids, "") {
		s.host += "," + matcher(label.Host, ids)
	}
	s.node, s.scanned = matcher("node", nodes), matcher("agent_hostname", scanned)
	return s
}

// ofClusters limits queries to the clusters of these nodes. A series without a cluster may belong to any.
func ofClusters(places []place) scope {
	hosts, clusters := []string{""}, []string{""}
	for _, p := range places {
		if p.host != nil {
			hosts, clusters = append(hosts, p.of), append(clusters, p.in.uuid)
		}
	}
	s := scope{host: matcher(label.Cluster, hosts), cluster: matcher(label.Cluster, clusters)}
	s.node = s.cluster
	return s
}

func matcher(label string, values []string) string {
	slices.Sort(values)
	values = slices.Compact(values)
	for i, v := range values {
		values[i] = regexp.QuoteMeta(v)
	}
	return label + "=~" + strconv.Quote(strings.Join(values, "|"))
}
