package observe

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/trace"
)

// Recorder records what one function does. It is safe for concurrent use; a nil one does nothing.
type Recorder struct {
	exporter *Exporter
	function string

	mu     sync.Mutex
	warm   bool // a call was recorded before
	series map[key]*series
	gauges map[string]*reading
}

// Call is a call that was answered: an operation, or the delivery of an event.
type Call struct {
	Route string // "METHOD /path/{param}" of an operation
	Path  string // as requested

	EventType, EventID, EventSource, EventSubject string // of a delivery
	Duplicate                                     bool   // the event had been handled before

	Status int
	Error  error
	Start  time.Time
	Took   time.Duration
}

// Outcomes of a delivery.
const (
	done      = "done"
	duplicate = "duplicate"
	refused   = "refused" // not retried; the Broker sends it to the dead letter sink
	retry     = "retry"   // the Broker delivers it again
)

// outcome is what Knative does with the event after that status.
func (c *Call) outcome() string {
	switch {
	case c.Status/100 == 2 && c.Duplicate:
		return duplicate
	case c.Status/100 == 2:
		return done
	case c.Status >= 500, c.Status == http.StatusNotFound, c.Status == http.StatusRequestTimeout,
		c.Status == http.StatusConflict, c.Status == http.StatusTooManyRequests:
		return retry
	}
	return refused
}

// Sample returns ctx with the decision whether to keep its trace, according to the settings.
func (r *Recorder) Sample(ctx context.Context) context.Context {
	if r == nil {
		return ctx
	}
	return r.exporter.config.Sampler.decide(ctx)
}

// Note records a call; ctx contains the call's span.
func (r *Recorder) Note(ctx context.Context, c Call) {
	if r == nil {
		return
	}
	r.measure(&c)
	r.mu.Lock()
	cold := !r.warm
	r.warm = true
	r.mu.Unlock()
	if cold {
		r.started(c.Start)
	}
	if r.exporter.traces == nil || !trace.Sampled(ctx) {
		return
	}
	s := begun(ctx, c.Start, c.Took)
	if c.EventType != "" {
		s.Name, s.Kind = "process "+c.EventType, consumerKind
		s.Attributes = []attribute{
			text("cloudevents.event_type", c.EventType), text("cloudevents.event_id", c.EventID),
			text("cloudevents.event_source", c.EventSource), text("cloudevents.event_subject", c.EventSubject),
			text("littoral.outcome", c.outcome()),
		}
	} else {
		method, route, _ := strings.Cut(c.Route, " ")
		s.Name, s.Kind = c.Route, serverKind
		s.Attributes = []attribute{
			text("http.request.method", method), text("http.route", route), text("url.path", c.Path),
		}
	}
	s.Attributes = append(s.Attributes, number("http.response.status_code", c.Status))
	if cold {
		s.Attributes = append(s.Attributes, flag("faas.coldstart", true))
	}
	if c.Error != nil && (c.Status >= 500 || c.EventType != "") {
		s.Status = &status{Code: statusError, Message: short(c.Error)}
	}
	r.exporter.add(r, s)
}

// begun returns the span that ctx is in.
func begun(ctx context.Context, start time.Time, took time.Duration) span {
	return span{
		TraceID: trace.ID(ctx), SpanID: trace.Span(ctx), ParentID: trace.Above(ctx), TraceState: trace.State(ctx),
		Flags: sampledFlag, Start: at(start), End: at(start.Add(took)),
	}
}

// short is the first line of an error, truncated: the log has all of it.
func short(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return problem.Brief(line, 300)
}
