package observe

import (
	"fmt"
	"net/http"
	"time"

	"github.com/littoral-project/littoral/shared/trace"
)

// Transport returns base with the trace of each request's context added to it (Traceparent, Tracestate) and, if there
// is a collector, a span for each request. It works on a nil Recorder: then the callee's span is directly below the
// caller's.
func (r *Recorder) Transport(base http.RoundTripper) http.RoundTripper {
	return transport{recorder: r, base: base}
}

type transport struct {
	recorder *Recorder
	base     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if trace.Parent(ctx) == "" || req.Header.Get("Traceparent") != "" {
		return t.base.RoundTrip(req)
	}
	told := t.recorder != nil && t.recorder.exporter.traces != nil && trace.Sampled(ctx)
	if told {
		state := trace.State(ctx)
		ctx = trace.WithState(trace.Start(ctx, trace.Parent(ctx)), state)
	}
	out := req.Clone(ctx)
	out.Header.Set("Traceparent", trace.Parent(ctx))
	if state := trace.State(ctx); state != "" {
		out.Header.Set("Tracestate", state)
	}
	start := time.Now()
	resp, err := t.base.RoundTrip(out)
	if !told {
		return resp, err
	}
	s := begun(ctx, start, time.Since(start))
	// Neither path nor query: an address that a user gave may hold a secret.
	s.Name, s.Kind = req.Method+" "+req.URL.Host, clientKind
	s.Attributes = []attribute{text("http.request.method", req.Method), text("server.address", req.URL.Host)}
	switch {
	case err != nil:
		s.Status = &status{Code: statusError, Message: short(err)}
	default:
		s.Attributes = append(s.Attributes, number("http.response.status_code", resp.StatusCode))
		if resp.StatusCode >= http.StatusBadRequest {
			s.Status = &status{Code: statusError, Message: fmt.Sprintf("answered %s", resp.Status)}
		}
	}
	t.recorder.exporter.add(t.recorder, s)
	return resp, err
}
