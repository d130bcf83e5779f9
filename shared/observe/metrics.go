package observe

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// bounds of the histograms in seconds, as OpenTelemetry recommends for HTTP.
var bounds = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

// key identifies a series of a function. Its parts come from declarations, so there are few. Only without an event key,
// which distinguishes our events from others (package events), can callers invent event types.
type key struct {
	route, event, outcome string
	status                int
	start                 bool // the start of a process rather than a call
}

// series counts calls since the process began.
type series struct {
	count   uint64
	sum     float64
	buckets [15]uint64 // one more than there are bounds
	first   time.Time  // when the first of them started
	told    bool       // it was pushed successfully
	fresh   bool       // it has changed since the last push
}

// mostSeries limits the series of one function.
const mostSeries = 500

// reading is the value of a gauge.
type reading struct {
	unit, description string
	value             float64
	at                time.Time
	fresh             bool
}

func (r *Recorder) measure(c *Call) {
	if r.exporter.metrics == nil {
		return
	}
	k := key{event: c.EventType}
	if c.EventType != "" {
		k.outcome = c.outcome()
	} else {
		k.route, k.status = c.Route, c.Status
	}
	r.count(k, c.Start, c.Took)
}

// woken is within how long after its start a process gets the call that it was started for. One that comes later found it
// awake, as in the laptop's one process.
const woken = 30 * time.Second

// started counts a start from zero: from the start of the process to its first call.
func (r *Recorder) started(first time.Time) {
	if r.exporter.metrics == nil {
		return
	}
	if took := first.Sub(r.exporter.started); took >= 0 && took < woken {
		r.count(key{start: true}, first, took)
	}
}

// count adds one to a series.
func (r *Recorder) count(k key, began time.Time, took time.Duration) {
	seconds := took.Seconds()
	bucket, _ := slices.BinarySearch(bounds, seconds) // a value equal to a bound is in the bucket below it
	r.mu.Lock()
	s := r.series[k]
	if s == nil && len(r.series) >= mostSeries {
		k = key{event: "other", outcome: k.outcome}
		s = r.series[k]
	}
	if s == nil {
		s = &series{first: began}
		r.series[k] = s
	}
	s.count++
	s.sum += seconds
	s.buckets[bucket]++
	s.fresh = true
	r.mu.Unlock()
	r.exporter.metrics.arm(false)
}

// Gauge records the present value of a quantity, with a name and unit as in OpenTelemetry: "littoral.outbox.lag" in
// "s".
func (r *Recorder) Gauge(name, unit, description string, value float64) {
	if r == nil || r.exporter.metrics == nil {
		return
	}
	r.mu.Lock()
	r.gauges[name] = &reading{unit, description, value, time.Now(), true}
	r.mu.Unlock()
	r.exporter.metrics.arm(false)
}

// zeroAge limits the age of a series' first zero: metric stores refuse old samples.
const zeroAge = 5 * time.Minute

// changed returns the metrics that have changed since the last push; undo marks them as changed again.
//
// A new series begins with a zero at its first call. An instance that handles one call and ends would otherwise leave a
// counter that never increased, and rate() would find nothing.
func (r *Recorder) changed(now time.Time) (list []metric, undo func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	http := metric{
		Name: "http.server.request.duration", Description: "Duration of the calls of an operation", Unit: "s",
		Histogram: &histogram{Temporality: cumulative},
	}
	reaction := metric{
		Name: "littoral.reaction.duration", Description: "Duration of the deliveries of an event", Unit: "s",
		Histogram: &histogram{Temporality: cumulative},
	}
	start := metric{
		Name: "littoral.start.duration", Description: "From the start of a process that was woken to its first call", Unit: "s",
		Histogram: &histogram{Temporality: cumulative},
	}
	var pushed []*series
	firsts := map[*series]bool{}
	for _, k := range slices.SortedFunc(maps.Keys(r.series), key.compare) {
		s := r.series[k]
		if !s.fresh {
			continue
		}
		h := reaction.Histogram
		switch {
		case k.start:
			h = start.Histogram
		case k.event == "":
			h = http.Histogram
		}
		started := at(r.exporter.started)
		if !s.told && now.Sub(s.first) < zeroAge {
			h.Points = append(h.Points, histogramPoint{
				Attributes: k.attributes(), Start: started, Time: at(s.first.Add(-time.Millisecond)), // samples need distinct times
				Buckets: make([]count, len(s.buckets)), Bounds: bounds,
			})
		}
		point := histogramPoint{
			Attributes: k.attributes(), Start: started, Time: at(now), Count: count(s.count), Sum: s.sum, Bounds: bounds,
		}
		for _, n := range s.buckets {
			point.Buckets = append(point.Buckets, count(n))
		}
		h.Points = append(h.Points, point)
		firsts[s] = !s.told
		s.fresh, s.told = false, true
		pushed = append(pushed, s)
	}
	for _, m := range []metric{http, reaction, start} {
		if len(m.Histogram.Points) > 0 {
			list = append(list, m)
		}
	}
	var read []*reading
	for _, name := range slices.Sorted(maps.Keys(r.gauges)) {
		g := r.gauges[name]
		if !g.fresh {
			continue
		}
		g.fresh = false
		read = append(read, g)
		list = append(list, metric{
			Name: name, Unit: g.unit, Description: g.description,
			Gauge: &gauge{Points: []gaugePoint{{Time: at(g.at), Value: g.value}}},
		})
	}
	return list, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, s := range pushed {
			s.fresh = true
			if firsts[s] {
				s.told = false
			}
		}
		for _, g := range read {
			g.fresh = true
		}
	}
}

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.route, other.route), cmp.Compare(k.event, other.event),
		cmp.Compare(k.outcome, other.outcome), cmp.Compare(k.status, other.status)) // the start has none of them
}

func (k key) attributes() []attribute {
	if k.start {
		return nil
	}
	if k.event != "" {
		return []attribute{text("cloudevents.event_type", k.event), text("littoral.outcome", k.outcome)}
	}
	method, route, _ := strings.Cut(k.route, " ")
	return []attribute{
		text("http.request.method", method), text("http.route", route), number("http.response.status_code", k.status),
	}
}
