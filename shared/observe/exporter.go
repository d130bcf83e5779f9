package observe

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Exporter pushes what Recorders record. It is safe for concurrent use; a nil one does nothing.
type Exporter struct {
	config  Config
	started time.Time

	traces, metrics *signal // nil when that signal is off

	mu        sync.Mutex
	queue     []noted
	dropped   int // spans lost because the queue was full, since the last push
	recorders []*Recorder
}

// noted is a span and its Recorder.
type noted struct {
	of   *Recorder
	span span
}

// New returns an Exporter, or nil if c pushes nothing. It connects only when there is something to push. The client
// must not be one that a Recorder observes.
func New(c Config, client *http.Client, log *slog.Logger) *Exporter {
	if c.Traces.URL == "" && c.Metrics.URL == "" {
		return nil
	}
	if c.ServiceInstanceID == "" {
		c.ServiceInstanceID = uuid.NewString() // one process is one instance: its counters start at zero
	}
	x := &Exporter{config: c, started: time.Now()}
	if c.Traces.URL != "" {
		x.traces = &signal{
			what: "traces", target: c.Traces, delay: c.TraceDelay, config: c, client: client, log: log,
			take: x.drainSpans, sending: make(chan struct{}, 1),
		}
	}
	if c.Metrics.URL != "" {
		x.metrics = &signal{
			what: "metrics", target: c.Metrics, delay: c.MetricDelay, config: c, client: client, log: log,
			take: x.drainMetrics, sending: make(chan struct{}, 1),
		}
	}
	return x
}

// Recorder returns the recorder for the calls of the named function.
func (x *Exporter) Recorder(function string) *Recorder {
	if x == nil {
		return nil
	}
	r := &Recorder{exporter: x, function: function, series: map[key]*series{}, gauges: map[string]*reading{}}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.recorders = append(x.recorders, r)
	return r
}

// Farewell is how long Shutdown may take when a process ends: less than the shortest grace period of a Service.
const Farewell = 2 * time.Second

// Shutdown pushes what is left, at most until ctx ends. What is recorded afterwards is pushed as usual.
func (x *Exporter) Shutdown(ctx context.Context) {
	if x == nil {
		return
	}
	var both sync.WaitGroup
	for _, s := range []*signal{x.traces, x.metrics} {
		if s != nil {
			both.Go(func() { s.flush(ctx) })
		}
	}
	both.Wait()
}

// resource describes the function to the collector.
func (x *Exporter) resource(function string) resource {
	name := x.config.Service
	if name == "" {
		name = function
	}
	list := []attribute{
		text("service.name", name), text("service.instance.id", x.config.ServiceInstanceID), text("faas.name", function),
		text("telemetry.sdk.language", "go"), text("telemetry.sdk.name", "littoral"),
	}
	if _, set := x.config.Resource["service.namespace"]; !set {
		list = append(list, text("service.namespace", "littoral"))
	}
	for _, key := range slices.Sorted(maps.Keys(x.config.Resource)) {
		list = append(list, text(key, x.config.Resource[key]))
	}
	return resource{Attributes: list}
}

// add queues a span; if the queue is full, the span is lost.
func (x *Exporter) add(r *Recorder, s span) {
	x.mu.Lock()
	full := len(x.queue) >= x.config.QueueSize
	if full {
		x.dropped++
	} else {
		x.queue = append(x.queue, noted{r, s})
	}
	batch := len(x.queue) >= x.config.Batch
	x.mu.Unlock()
	x.traces.arm(batch && !full)
}

// drainSpans removes a batch from the queue. undo puts it back, as far as there is room.
func (x *Exporter) drainSpans() (body any, undo func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.dropped > 0 {
		x.traces.log.Warn("spans were lost: the collector is slower than the calls", "spans", x.dropped)
		x.dropped = 0
	}
	n := min(len(x.queue), x.config.Batch)
	if n == 0 {
		return nil, nil
	}
	batch := slices.Clone(x.queue[:n])
	x.queue = slices.Delete(x.queue, 0, n)
	var request tracesRequest
	places := map[*Recorder]int{}
	for _, s := range batch {
		at, known := places[s.of]
		if !known {
			at = len(request.ResourceSpans)
			places[s.of] = at
			request.ResourceSpans = append(request.ResourceSpans, resourceSpans{
				Resource: x.resource(s.of.function), ScopeSpans: []scopeSpans{{Scope: scope{scopeName}}},
			})
		}
		spans := &request.ResourceSpans[at].ScopeSpans[0].Spans
		*spans = append(*spans, s.span)
	}
	return request, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		room := max(x.config.QueueSize-len(x.queue), 0)
		if room < len(batch) {
			x.dropped += len(batch) - room
			batch = batch[len(batch)-room:] // the newest ones
		}
		x.queue = append(batch, x.queue...)
	}
}

// drainMetrics returns what changed since the last push. undo marks it as changed again.
func (x *Exporter) drainMetrics() (body any, undo func()) {
	x.mu.Lock()
	recorders := slices.Clone(x.recorders)
	x.mu.Unlock()
	var request metricsRequest
	var undos []func()
	for _, r := range recorders {
		list, again := r.changed(time.Now())
		if len(list) == 0 {
			continue
		}
		undos = append(undos, again)
		request.ResourceMetrics = append(request.ResourceMetrics, resourceMetrics{
			Resource: x.resource(r.function), ScopeMetrics: []scopeMetrics{{Scope: scope{scopeName}, Metrics: list}},
		})
	}
	if len(undos) == 0 {
		return nil, nil
	}
	return request, func() {
		for _, u := range undos {
			u()
		}
	}
}
