package collect

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/telemetry"
	"github.com/littoral-project/littoral/shared/topology"
)

const (
	// wholeEvery is how often all nodes are asked about, whether or not something about them has changed: it is how old
	// may be what only people look at, and how long a sample that came late can go unnoticed. It is also the longest time
	// over which telemetry is asked what has changed.
	wholeEvery = 10 * time.Minute

	// late is how late a sample may come and still be noticed at once.
	late = 30 * time.Second

	// A change of others' usage in percent that may be news; package topology decides.
	jump = 20
)

// glance is what little was asked to find out which nodes must be asked about.
type glance struct {
	news    topology.News
	someone bool // whom the outline does not know, or about whom it may be wrong, or that nobody was heard of for some time
	turned  bool // somebody was lost or has come back
	ask     map[int64]bool
	changed map[string][]telemetry.Sample // by query: series that came, ended or changed their value
	came    bool                          // a series that says which nodes there are
}

// quiet reports whether nothing but readings has changed.
func (g *glance) quiet() bool {
	for _, samples := range g.changed {
		if len(samples) > 0 {
			return false
		}
	}
	return !g.someone && len(g.ask) == 0
}

// same reports whether there are the clusters and nodes that there were, under the names that they had. Where series have only ended,
// there are: they count for as long as telemetry is asked to look back.
func (g *glance) same() bool { return !g.came && !g.someone && !g.turned }

// comparable returns what the look counted that has stored the outline; nil if it cannot be told what has changed since.
func (c *Collector) comparable(o *topology.Outline, now time.Time) *counts {
	if o == nil || len(o.Nodes) == 0 || !now.After(o.At) || now.Sub(o.WholeAt) >= wholeEvery {
		return nil
	}
	return decodeCounts(o.Counts)
}

// glance asks when each node was heard of, for its readings, and which series have changed since the outline was stored, when
// those were that last has. It returns nil if one of these cannot be answered.
func (c *Collector) glance(ctx context.Context, o *topology.Outline, last *counts, now time.Time) *glance {
	ctx, cancel := context.WithTimeout(ctx, c.config.QueryTimeout*3/4) // to ask about all nodes then costs more, so it comes after
	defer cancel()
	g := &glance{ask: map[int64]bool{}}
	answered := make(chan error, 1)
	go func() { answered <- g.changes(ctx, c, last, now.Sub(o.At), now) }()
	ok := g.readings(ctx, c, o, now)
	if err := <-answered; err != nil || !ok {
		return nil
	}
	g.news.Since = o.At
	return g
}

// readings asks for what moves all the time.
func (g *glance) readings(ctx context.Context, c *Collector, o *topology.Outline, now time.Time) bool {
	nodes := make(map[int64]int, len(o.Nodes))
	for i, n := range o.Nodes {
		nodes[n.Series] = i
	}
	if len(nodes) < len(o.Nodes) {
		return false
	}
	nan := math.NaN()
	all := make([]measured, len(o.Nodes))
	for i := range all {
		all[i] = measured{nan, nan, nan, nan, nan, nan}
	}
	read := func(query string, set func(m *measured, v float64)) bool {
		return c.client.Each(ctx, query, now, func(r *telemetry.Row) {
			if string(r.Label(label.Agent)) == self {
				return
			}
			i, known := nodes[seriesOfRow(r)]
			if !known {
				g.someone = true // several names of one host, or a new one
				return
			}
			set(&all[i], r.Value)
		}) == nil
	}
	if !read(heard(), func(m *measured, v float64) { m.seen = v }) {
		return false
	}
	stranger := g.someone
	ok := read(cpuUsage(of(qCPUSeconds, onlyIdle)), func(m *measured, v float64) { m.cpu = percent(v).Or(nan) }) &&
		read(perHost("min", qMemAvailable), func(m *measured, v float64) { m.free = positive(v).Or(nan) }) &&
		read(perHost("sum", "irate("+qEnergy+rateWindow+")"), func(m *measured, v float64) { m.watts = joules(v).Or(nan) }) &&
		read(perHost("max", qForecastCPU), func(m *measured, v float64) { m.forecastCPU = percent(v).Or(nan) }) &&
		read(perHost("max", qForecastMem), func(m *measured, v float64) { m.forecastMemory = percent(v).Or(nan) })
	if !ok {
		return false
	}
	g.someone = stranger // a host without a name of its own may still have readings
	present := float64(now.UnixMilli()) / 1000
	stale, forgotten := c.config.StaleAfter.Seconds(), c.config.Lookback.Seconds()
	stored := float64(o.At.UnixMilli()) / 1000
	newest := 0.0
	var live, any topology.Measure
	for i, n := range o.Nodes {
		newest = max(newest, n.Seen)
		seen := n.Seen
		if at := min(all[i].seen, present); at > seen {
			seen = at
			g.news.Series = append(g.news.Series, n.Series)
			g.news.Seen = append(g.news.Seen, time.UnixMilli(int64(math.Round(seen*1000))))
		}
		lost := present-seen > stale
		if lost != (stored-n.Seen > stale) {
			g.ask[n.Series], g.turned = true, true
		}
		if present-seen > forgotten {
			g.someone = true
		}
		any = topology.Known(min(seen, any.Or(seen)))
		if !lost {
			live = topology.Known(min(seen, live.Or(seen)))
		}
		g.move(&n, &all[i])
	}
	if present-newest >= stale {
		g.someone = true // nobody was heard of
	}
	if g.news.Oldest = live; live.IsZero() {
		g.news.Oldest = any
	}
	g.news.At = now
	return true
}

// measured is what telemetry says of one node at present. What it does not say is not a number.
type measured struct{ seen, cpu, free, watts, forecastCPU, forecastMemory float64 }

// move notes readings that have moved.
func (g *glance) move(n *topology.Outlined, m *measured) {
	r := n.Readings
	if total := r.UsedMemory + r.FreeMemory; !math.IsNaN(total) && !math.IsNaN(m.free) {
		r.UsedMemory = max(total-m.free, 0)
	} else if math.IsNaN(r.UsedMemory) != math.IsNaN(m.free) {
		g.ask[n.Series] = true
		return
	}
	r.CPUPercent, r.FreeMemory = m.cpu, m.free
	r.Watts, r.ForecastCPU, r.ForecastMemory = m.watts, m.forecastCPU, m.forecastMemory
	switch {
	case r.Near(n.Readings):
	case n.RunsOurs, math.IsNaN(r.CPUPercent) != math.IsNaN(n.Readings.CPUPercent),
		math.Abs(r.CPUPercent-n.AnnouncedCPU) >= jump, math.Abs(r.MemoryPercent()-n.AnnouncedMemory) >= jump:
		// What applications of ours use must be of the same moment; and whoever announces must know all.
		g.ask[n.Series] = true
	default:
		g.news.Moved = append(g.news.Moved, n.Series)
		g.news.Readings = append(g.news.Readings, r)
	}
}

// probe finds the series of a metric that are there and were not at the last look, were there and are not, or have another value than
// then.
type probe struct {
	name string

	// These are counts, by agent, which cost telemetry little. Of an agent nothing has changed unless as many are there now as the last
	// look has counted and as have lived meanwhile, and no value has moved. Series whose values may move are counted once for both
	// of the latter, as of moving. qCPUs is compared by hosts (counts.addCPUs), so it has none.
	now, lived string
	valued     bool

	// changed are all series within a scope that are there now or were then, but for those that are equal. It costs several times as
	// much.
	changed func(scope string) string
	// returned are those that the last look has seen otherwise. It need be asked only of values that have moved: they may be again
	// what they were then.
	returned func(scope string) string
	// came are those of changed that were not there then, where series have no value. It is asked of what says which nodes there are.
	came func(scope string) string
}

// moving counts the series whose values have moved and the others, by a label, so that telemetry reads them once.
func moving(selector, over string, apart bool) string {
	return "count_values" + grouped(apart) + `("` + moves + `", clamp_max(changes(` + selector + over + `), 1))`
}

// The ends of the names of queries beside that for what has changed.
const (
	returned = ", returned"
	came     = ", came"
)

const (
	moves = "littoral_moves"
	still = "0"
)

// probes are about what has changed since so long ago, or since the last look, which is later: a value that was another one at that time
// only has changed too. Readings are compared with those that are stored, and what only people look at, such as the highest frequency of
// a cpu, is asked for with all else of a node.
func probes(ago, look time.Duration, apart bool) []probe {
	then, last := fmt.Sprintf(" offset %ds", seconds(ago)), fmt.Sprintf(" offset %ds", seconds(look))
	recent, longer := fmt.Sprintf("[%ds]", seconds(ago)), fmt.Sprintf("[%ds]", seconds(ago+scraped))
	differs := func(now, before string) string {
		return fmt.Sprintf("(%[1]s or %[2]s) unless (%[1]s == %[2]s)", now, before)
	}
	var all []probe
	add := func(valued bool, name string, matchers ...string) *probe {
		selector := of(name, matchers...)
		within := func(scope string) string { return of(name, append(slices.Clone(matchers), scope)...) }
		p := probe{
			name: name, valued: valued, now: "count" + grouped(apart) + "(" + selector + ")",
			lived:    "count" + grouped(apart) + "(present_over_time(" + selector + recent + "))",
			changed:  func(scope string) string { return differs(within(scope), within(scope)+then) },
			returned: func(scope string) string { return differs(within(scope), within(scope)+last) },
		}
		if valued {
			p.lived = moving(selector, longer, apart)
		}
		all = append(all, p)
		return &all[len(all)-1]
	}
	for _, name := range []string{qOrch, qAgent, qRuntime, qHost, qUname, qVnet} {
		add(false, name).came = func(scope string) string { return of(name, scope) + " unless " + of(name, scope) + then }
	}
	for _, name := range []string{qLabels, qPod, qContainer, qWorkload} {
		add(false, name)
	}
	for _, name := range []string{qScore, qVulnerable, qUnschedulable, qMounted, qMemTotal, qPhase} {
		add(true, name)
	}
	add(true, qCapacity, onlyCapacity)
	for _, name := range []string{qNetInfo, qNetUp, qNetAddress, qNetSpeed} {
		add(true, name, ofMachines)
	}
	cpus := func(scope, offset string) string {
		return perHost("count", fmt.Sprintf("group by (%s, cpu) (%s%s)", byHost, of(qCPUSeconds, onlyIdle, scope), offset))
	}
	return append(all, probe{
		name: qCPUs, changed: func(scope string) string { return differs(cpus(scope, ""), cpus(scope, then)) },
	})
}

// scraped is the longest time between two samples of a series with which a change of its value is noticed at once.
const scraped = time.Minute

// maxNamed is of how many agents a query is limited to those. It bounds the query, beside which telemetry reads more of the others
// than it leaves out.
const maxNamed = 200

// changes asks which series have changed since the last look, so long ago, and whether one came that says which nodes there are. The
// error says that this cannot be answered.
func (g *glance) changes(ctx context.Context, c *Collector, last *counts, look time.Duration, at time.Time) error {
	all := probes(look+late, look, last.apart)
	hints := map[string]string{}
	for _, p := range all {
		if p.now != "" {
			hints[p.now], hints[p.lived] = p.now, p.lived
		}
	}
	answers, err := c.client.AskAll(ctx, hints, at, c.config.QueryTimeout)
	if err != nil {
		return err
	}
	now := &counts{last.apart, map[string]map[string]int64{}}
	if err := now.addCPUs(ctx, c.client, at); err != nil {
		return err
	}
	changed := map[string]string{}
	for _, p := range all {
		if p.now != "" {
			now.add(p.name, answers[p.now])
		}
		differ, values := p.hinted(now, last, answers[p.lived])
		if len(differ) == 0 {
			continue
		}
		scope := ""
		if last.apart && len(differ) <= maxNamed {
			scope = matcher(label.Agent, slices.Collect(maps.Keys(differ)))
		}
		changed[p.name] = p.changed(scope)
		if values {
			changed[p.name+returned] = p.returned(scope)
		}
		if p.came != nil {
			changed[p.name+came] = p.came(scope)
		}
	}
	if g.news.Counts, err = now.encode(); err != nil || len(changed) == 0 {
		return err
	}
	if answers, err = c.client.AskAll(ctx, changed, at, c.config.QueryTimeout); err != nil {
		return err
	}
	g.changed = map[string][]telemetry.Sample{}
	for name, samples := range answers {
		if strings.HasSuffix(name, came) {
			g.came = g.came || len(samples) > 0
			continue
		}
		name = strings.TrimSuffix(name, returned)
		g.changed[name] = append(g.changed[name], samples...)
	}
	return nil
}

// hinted returns the agents of whose series something may have changed since the last look, and whether that is so of values.
func (p *probe) hinted(now, last *counts, lived []telemetry.Sample) (differ map[string]bool, values bool) {
	alive, differ := map[string]int64{}, map[string]bool{}
	for _, s := range lived {
		agent := s.Labels[label.Agent]
		alive[agent] += int64(s.Value)
		if p.valued && s.Labels[moves] != still {
			differ[agent], values = true, true
		}
	}
	for _, by := range []map[string]int64{now.of[p.name], last.of[p.name], alive} {
		for agent := range by {
			if now.differs(last, p.name, agent) || p.lived != "" && now.of[p.name][agent] != alive[agent] {
				differ[agent] = true
			}
		}
	}
	return differ, values
}
