// Package otlp receives what functions push, as an OpenTelemetry Collector does, and follows one trace through them.
package otlp

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// Collector keeps the spans of one trace, and which functions pushed metrics. The zero value follows none yet.
type Collector struct {
	mu       sync.Mutex
	trace    string
	spans    map[string]Span // by id
	measured map[string]bool
}

// Span is one that was pushed.
type Span struct{ Function, Name, Kind, Parent, Failure string }

// Follow begins with another trace, given by its id in hex.
func (c *Collector) Follow(trace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trace, c.spans, c.measured = trace, map[string]Span{}, map[string]bool{}
}

func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = c.receive(r.URL.Path, body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (c *Collector) receive(path string, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch path {
	case "/v1/traces":
		request := ptraceotlp.NewExportRequest()
		if err := request.UnmarshalJSON(body); err != nil {
			return err
		}
		for _, rs := range request.Traces().ResourceSpans().All() {
			name, _ := rs.Resource().Attributes().Get("service.name")
			for _, ss := range rs.ScopeSpans().All() {
				for _, one := range ss.Spans().All() {
					c.add(name.Str(), one)
				}
			}
		}
		return nil
	case "/v1/metrics":
		request := pmetricotlp.NewExportRequest()
		if err := request.UnmarshalJSON(body); err != nil {
			return err
		}
		for _, rm := range request.Metrics().ResourceMetrics().All() {
			if name, ok := rm.Resource().Attributes().Get("service.name"); ok && c.measured != nil {
				c.measured[name.Str()] = true
			}
		}
		return nil
	}
	return errors.New("neither traces nor metrics")
}

func (c *Collector) add(function string, one ptrace.Span) {
	if one.TraceID().String() != c.trace {
		return
	}
	s := Span{function, one.Name(), one.Kind().String(), one.ParentSpanID().String(), ""}
	if one.Status().Code() == ptrace.StatusCodeError {
		s.Failure = one.Status().Message()
	}
	c.spans[one.SpanID().String()] = s
}

// Path reports whether the functions were reached one after the other, each by a span below one of the function before,
// the first below the root.
func (c *Collector) Path(root string, functions ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	below := map[string]bool{root: true}
	for _, function := range functions {
		next := map[string]bool{}
		for id, one := range c.spans {
			if below[one.Parent] && one.Function == function {
				next[id] = true
			}
		}
		below = next
	}
	return len(below) > 0
}

// Whole reports whether every span's parent is known, or the root.
func (c *Collector) Whole(root string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.spans {
		if _, known := c.spans[one.Parent]; !known && one.Parent != root {
			return false
		}
	}
	return true
}

// Measured reports whether every one of the functions has pushed metrics.
func (c *Collector) Measured(functions ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(functions, func(f string) bool { return !c.measured[f] })
}

// Spans lists what was kept.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Span, 0, len(c.spans))
	for _, one := range c.spans {
		all = append(all, one)
	}
	return all
}
