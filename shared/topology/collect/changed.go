package collect

import (
	"context"
	"fmt"
	"math"
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

// comparable reports whether telemetry can tell what has changed since the outline was stored.
func (c *Collector) comparable(o *topology.Outline, now time.Time) bool {
	return o != nil && len(o.Nodes) > 0 && now.After(o.At) && now.Sub(o.WholeAt) < wholeEvery
}

// glance asks when each node was heard of, for its cpu and memory, and which series have changed since the outline was
// stored. It returns nil if one of these cannot be answered.
func (c *Collector) glance(ctx context.Context, o *topology.Outline, now time.Time) *glance {
	ctx, cancel := context.WithTimeout(ctx, c.config.QueryTimeout/2)
	defer cancel()
	g := &glance{ask: map[int64]bool{}}
	answered := make(chan bool, 1)
	go func() {
		var ok bool
		g.changed, g.came, ok = c.changes(ctx, now.Sub(o.At), now)
		answered <- ok
	}()
	ok := g.readings(ctx, c, o, now)
	if !<-answered || !ok {
		return nil
	}
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
	type measured struct{ seen, cpu, free float64 }
	all := make([]measured, len(o.Nodes))
	for i := range all {
		all[i] = measured{nan, nan, nan}
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
		read(perHost("min", qMemAvailable), func(m *measured, v float64) { m.free = positive(v).Or(nan) })
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
		g.move(&n, all[i].cpu, all[i].free)
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

// move notes readings that have moved.
func (g *glance) move(n *topology.Outlined, cpu, free float64) {
	r := n.Readings
	if total := r.UsedMemory + r.FreeMemory; !math.IsNaN(total) && !math.IsNaN(free) {
		r.UsedMemory = max(total-free, 0)
	} else if math.IsNaN(r.UsedMemory) != math.IsNaN(free) {
		g.ask[n.Series] = true
		return
	}
	r.CPUPercent, r.FreeMemory = cpu, free
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

// probe finds the series of a metric that are there and were not, were there and are not, or have another value than some
// time ago.
type probe struct {
	name string
	// hints are counts, which cost telemetry little. Nothing has changed unless the first two differ from each other or from
	// the series that lived meanwhile, or a value has moved. Those whose values may move are counted once for both, as of moving.
	now, then, lived, moved string
	// changed are all series that are there now or were then, but for those that are equal. It costs several times as much.
	changed string
	// returned are those that the last look has seen otherwise. It need be asked only of values that have moved: they may be again
	// what they were then.
	returned string
	// came are those of changed that were not there then, where series have no value. It is asked of what says which nodes there are.
	came string
}

// hinted reports whether something may have changed, and whether that is so of values, given the hints of all probes.
func (p *probe) hinted(answers map[string]telemetry.Answer) (changed, values bool) {
	count := func(query string) (all, moved float64) {
		for _, s := range answers[query].Samples {
			all += s.Value
			if s.Labels[moves] != still {
				moved += s.Value
			}
		}
		return all, moved
	}
	now, _ := count(p.now)
	then, _ := count(p.then)
	lived, _ := count(p.lived)
	_, moved := count(p.moved)
	return now != then || now != lived || moved > 0, moved > 0
}

// moving counts the series whose values have moved and the others, by a label, so that telemetry reads them once.
func moving(selector, over string) string {
	return `count_values("` + moves + `", clamp_max(changes(` + selector + over + `), 1))`
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
// only has changed too.
func probes(ago, look time.Duration) []probe {
	then, last := fmt.Sprintf(" offset %ds", seconds(ago)), fmt.Sprintf(" offset %ds", seconds(look))
	recent, longer := fmt.Sprintf("[%ds]", seconds(ago)), fmt.Sprintf("[%ds]", seconds(ago+scraped))
	lived := func(selector string) string { return "count(present_over_time(" + selector + recent + "))" }
	build := func(name, selector, lived, moved, equal string, at func(offset string) string) probe {
		differs := func(before string) string {
			return fmt.Sprintf("(%[1]s or %[2]s) unless (%[3]s)", at(""), before, fmt.Sprintf(equal, at(""), before))
		}
		return probe{
			name: name, now: "count(" + selector + ")", then: "count(" + selector + then + ")",
			lived: lived, moved: moved,
			changed: differs(at(then)), returned: differs(at(last)),
		}
	}
	var all []probe
	add := func(valued bool, name string, matchers ...string) {
		selector := of(name, matchers...)
		alive, moved := lived(selector), ""
		if valued {
			moved = moving(selector, longer)
			alive = moved
		}
		all = append(all, build(name, selector, alive, moved, "%s == %s", func(offset string) string { return selector + offset }))
	}
	for _, name := range []string{qOrch, qAgent, qRuntime, qHost, qUname, qVnet} {
		add(false, name)
		all[len(all)-1].came = of(name) + " unless " + of(name) + then
	}
	for _, name := range []string{qLabels, qPod, qContainer, qWorkload} {
		add(false, name)
	}
	for _, name := range []string{qScore, qVulnerable, qUnschedulable, qMounted, qMaxFrequency, qMemTotal, qPhase} {
		add(true, name)
	}
	add(true, qCapacity, onlyCapacity)
	for _, name := range []string{qNetInfo, qNetUp, qNetAddress, qNetSpeed} {
		add(true, name, ofMachines)
	}
	idle := of(qCPUSeconds, onlyIdle)
	all = append(all, build(qCPUs, idle, lived(idle), "", "%s == %s", func(offset string) string {
		return perHost("count", fmt.Sprintf("group by (%s, cpu) (%s%s)", byHost, idle, offset))
	}))

	// Of these what matters is how far they have moved.
	for _, name := range []string{qForecastCPU, qForecastMem} {
		moved := fmt.Sprintf("count(abs(%[1]s - %[1]s%[2]s) >= 1 or abs(%[1]s - %[1]s%[3]s) >= 1)", name, last, then)
		all = append(all, build(name, name, lived(name), moved, "abs(%s - %s) < 1",
			func(offset string) string { return perHost("max", name+offset) }))
	}
	power := func(offset string) string { return "irate(" + qEnergy + rateWindow + offset + ")" }
	moved := fmt.Sprintf("count(abs(%[1]s / %[2]s - 1) > 0.02 or abs(%[1]s / %[3]s - 1) > 0.02)", power(""), power(last), power(then))
	all = append(all, build(qPower, qEnergy, lived(qEnergy), moved,
		"abs(%[1]s - %[2]s) <= 0.02 * %[1]s", func(offset string) string { return perHost("sum", power(offset)) }))
	return all
}

// scraped is the longest time between two samples of a series with which a change of its value is noticed at once.
const scraped = time.Minute

// changes asks which series have changed since the last look, so long ago, and whether one came that says which nodes there are. ok is
// false if that cannot be answered.
func (c *Collector) changes(
	ctx context.Context, look time.Duration, at time.Time,
) (all map[string][]telemetry.Sample, someCame, ok bool) {
	asked := probes(look+late, look)
	hints, changed := map[string]string{}, map[string]string{}
	for _, p := range asked {
		for _, query := range []string{p.now, p.lived, p.then, p.moved} {
			if query != "" {
				hints[query] = query
			}
		}
	}
	sound := func(answers map[string]telemetry.Answer) bool {
		for _, a := range answers {
			if a.Err != nil || len(a.Warnings) > 0 {
				return false
			}
		}
		return true
	}
	answers := c.client.AskTogether(ctx, hints, at, c.config.QueryTimeout/2)
	if !sound(answers) {
		return nil, false, false
	}
	for _, p := range asked {
		hinted, values := p.hinted(answers)
		if hinted {
			changed[p.name] = p.changed
		}
		if values {
			changed[p.name+returned] = p.returned
		}
		if hinted && p.came != "" {
			changed[p.name+came] = p.came
		}
	}
	if len(changed) == 0 {
		return nil, false, true
	}
	answers = c.client.AskTogether(ctx, changed, at, c.config.QueryTimeout/2)
	all = map[string][]telemetry.Sample{}
	for name, a := range answers {
		if strings.HasSuffix(name, came) {
			someCame = someCame || len(a.Samples) > 0
			continue
		}
		name = strings.TrimSuffix(name, returned)
		all[name] = append(all[name], a.Samples...)
	}
	return all, someCame, sound(answers)
}
