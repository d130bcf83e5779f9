package observe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/littoral-project/littoral/shared/observe"
	"github.com/littoral-project/littoral/shared/trace"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// call is an operation that took 20 ms.
func call(status int) observe.Call {
	return observe.Call{
		Route: "GET /things/{id}", Path: "/things/1", Status: status, Start: time.Now(), Took: 20 * time.Millisecond,
	}
}

func delivery(status int, duplicate bool) observe.Call {
	return observe.Call{
		Route: "POST /{$}", EventType: "dev.littoral.job.ready.v1", EventID: "e1", EventSource: "/functions/x",
		EventSubject: "j1", Duplicate: duplicate, Status: status, Start: time.Now(), Took: time.Millisecond,
	}
}

func shutdown(t *testing.T, x *observe.Exporter) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	x.Shutdown(ctx)
}

func TestACallIsASpanBelowItsCaller(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	x := c.exporter(t, map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20x,X-Scope=one", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
		"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=lab",
	})
	r := x.Recorder("jobmanager-group-get")
	ctx := r.Sample(trace.WithState(trace.Start(t.Context(), parent), "vendor=1"))
	failed := call(http.StatusInternalServerError)
	failed.Error = errors.New("broken\nstack")
	r.Note(ctx, failed)
	event := r.Sample(trace.Start(t.Context(), trace.Parent(ctx)))
	r.Note(event, delivery(http.StatusNoContent, true))
	shutdown(t, x)

	require.Len(t, c.got(), 2)
	one, two := c.got()[0], c.got()[1]
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", one.TraceID().String())
	require.Equal(t, "00f067aa0ba902b7", one.ParentSpanID().String())
	require.Equal(t, trace.Span(ctx), one.SpanID().String())
	require.Equal(t, "vendor=1", one.TraceState().AsRaw())
	require.Equal(t, "GET /things/{id}", one.Name())
	require.Equal(t, ptrace.SpanKindServer, one.Kind())
	require.Equal(t, 20*time.Millisecond, one.EndTimestamp().AsTime().Sub(one.StartTimestamp().AsTime()))
	require.Equal(t, ptrace.StatusCodeError, one.Status().Code())
	require.Equal(t, "broken", one.Status().Message())
	require.Equal(t, map[string]any{
		"http.request.method": "GET", "http.route": "/things/{id}", "url.path": "/things/1",
		"http.response.status_code": int64(500), "faas.coldstart": true,
	}, one.Attributes().AsRaw())
	require.Equal(t, "jobmanager-group-get", one.resource["service.name"])
	require.Equal(t, "littoral", one.resource["service.namespace"])
	require.Equal(t, "lab", one.resource["deployment.environment.name"])
	require.NotEmpty(t, one.resource["service.instance.id"])

	require.Equal(t, one.TraceID(), two.TraceID())
	require.Equal(t, one.SpanID(), two.ParentSpanID())
	require.Equal(t, "process dev.littoral.job.ready.v1", two.Name())
	require.Equal(t, ptrace.SpanKindConsumer, two.Kind())
	require.Equal(t, "duplicate", two.Attributes().AsRaw()["littoral.outcome"])
	require.Equal(t, "Bearer x", c.headers[0].Get("Authorization"))
	require.Equal(t, "one", c.headers[0].Get("X-Scope"))
}

func TestOutgoingCallsHandTheTraceOn(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	var seen http.Header
	callee := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		w.WriteHeader(http.StatusTeapot)
	}))
	defer callee.Close()
	ask := func(r *observe.Recorder, ctx context.Context) { // which of the two varies first reads better
		client := &http.Client{Transport: r.Transport(http.DefaultTransport)}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, callee.URL+"/secret?token=x", http.NoBody)
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Empty(t, req.Header, "the caller's request stays as it is")
	}
	ctx := trace.WithState(trace.Start(t.Context(), ""), "vendor=1")

	x := c.exporter(t, nil)
	ask(x.Recorder("f"), ctx)
	shutdown(t, x)
	require.Len(t, c.got(), 1)
	span := c.got()[0]
	require.Equal(t, trace.Span(ctx), span.ParentSpanID().String())
	require.Equal(t, "00-"+trace.ID(ctx)+"-"+span.SpanID().String()+"-01", seen.Get("Traceparent"))
	require.Equal(t, "vendor=1", seen.Get("Tracestate"))
	require.Equal(t, ptrace.SpanKindClient, span.Kind())
	require.Equal(t, ptrace.StatusCodeError, span.Status().Code())
	require.NotContains(t, fmt.Sprint(span.Name(), span.Attributes().AsRaw()), "secret")

	ask(nil, ctx)
	require.Equal(t, trace.Parent(ctx), seen.Get("Traceparent"), "without a collector the callee is below the call itself")
	ask(nil, t.Context())
	require.Empty(t, seen.Get("Traceparent"), "outside a trace there is none to hand on")
	require.Len(t, c.got(), 1)
}

func TestSampling(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		sampler, arg   string
		root, kept, un bool // a new trace; a sampled parent; a parent that is not sampled
	}{
		"by default as the parent is":   {"", "", true, true, false},
		"always":                        {"always_on", "", true, true, true},
		"never":                         {"always_off", "", false, false, false},
		"only with a parent that is":    {"parentbased_always_off", "", false, true, false},
		"none of the traces":            {"traceidratio", "0", false, false, false},
		"all of the traces that it may": {"parentbased_traceidratio", "1", true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCollector(t)
			x := c.exporter(t, map[string]string{"OTEL_TRACES_SAMPLER": row.sampler, "OTEL_TRACES_SAMPLER_ARG": row.arg})
			r := x.Recorder("f")
			want := 0
			for parent, kept := range map[string]bool{"": row.root, parent: row.kept, parent[:53] + "00": row.un} {
				ctx := r.Sample(trace.Start(t.Context(), parent))
				require.Equal(t, kept, trace.Sampled(ctx), parent)
				r.Note(ctx, call(200))
				if kept {
					want++
				}
			}
			shutdown(t, x)
			require.Len(t, c.got(), want)
		})
	}
	t.Run("a ratio of the traces, the same ones everywhere", func(t *testing.T) {
		t.Parallel()
		settings := map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"}
		one := newExporter(t, "http://127.0.0.1:1", settings).Recorder("one")
		two := newExporter(t, "http://127.0.0.1:1", settings).Recorder("two")
		kept := 0
		for range 4000 {
			ctx := trace.Start(t.Context(), "")
			a, b := trace.Sampled(one.Sample(ctx)), trace.Sampled(two.Sample(trace.Start(ctx, trace.Parent(ctx))))
			require.Equal(t, a, b)
			if a {
				kept++
			}
		}
		require.InDelta(t, 1000, kept, 200) // more than seven standard deviations
	})
}

func TestACollectorNeverHoldsACallUp(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	c.hold = make(chan struct{})
	x := c.exporter(t, map[string]string{
		"OTEL_BSP_SCHEDULE_DELAY": "1", "OTEL_BSP_MAX_QUEUE_SIZE": "100", "OTEL_METRICS_EXPORTER": "none",
	})
	r := x.Recorder("f")
	for range 1000 { // the loop would not end if one of them waited
		r.Note(trace.Start(t.Context(), ""), call(200))
	}
	close(c.hold)
	shutdown(t, x)
	require.NotEmpty(t, c.got())
	require.LessOrEqual(t, len(c.got()), 200, "what is waiting is bounded")
}

// TestACollectorThatHangsDoesNotHoldTheEnd: whether it hangs in the last push of a process or in an earlier one.
func TestACollectorThatHangsDoesNotHoldTheEnd(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]string{"with the last push": "3600000", "with a push before": "1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, end := make(chan struct{}, 10), make(chan struct{})
			c := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				asked <- struct{}{}
				<-end
			}))
			t.Cleanup(c.Close)
			t.Cleanup(func() { close(end) })
			x := newExporter(t, c.URL, map[string]string{
				"OTEL_BSP_SCHEDULE_DELAY": delay, "OTEL_METRICS_EXPORTER": "none", "OTEL_EXPORTER_OTLP_TIMEOUT": "3600000",
			})
			x.Recorder("f").Note(trace.Start(t.Context(), ""), call(200))
			last, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan struct{})
			shut := func() {
				x.Shutdown(last)
				close(ended)
			}
			if delay == "1" {
				<-asked
				go shut()
			} else {
				go shut()
				<-asked
			}
			cancel()
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Fatal("it goes on after its time is up")
			}
		})
	}
}

func TestWhatIsNotAcceptedIsSentAgain(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	c.answer.Store(http.StatusServiceUnavailable)
	x := c.exporter(t, map[string]string{"OTEL_BSP_SCHEDULE_DELAY": "1", "OTEL_METRIC_EXPORT_INTERVAL": "1"})
	r := x.Recorder("f")
	r.Note(trace.Start(t.Context(), ""), call(200))
	require.Eventually(t, func() bool { return c.count() >= 4 }, 10*time.Second, time.Millisecond)
	c.answer.Store(0)
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.spans) == 1 && len(c.metrics) == 1
	}, 10*time.Second, time.Millisecond, "by itself, once")
	points := c.metrics[0].Metrics().ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Histogram().DataPoints()
	require.Equal(t, 2, points.Len(), "it still begins at nought")

	c.answer.Store(http.StatusBadRequest)
	before := c.count()
	r.Note(trace.Start(t.Context(), ""), call(200))
	require.Eventually(t, func() bool { return c.count() >= before+2 }, 10*time.Second, time.Millisecond)
	c.answer.Store(0)
	shutdown(t, x)
	require.Len(t, c.got(), 1, "what is refused is not tried again")
}

func TestWithoutACollectorNothingIsDone(t *testing.T) {
	t.Parallel()
	var x *observe.Exporter
	r := x.Recorder("f")
	ctx := trace.Start(t.Context(), parent)
	require.Equal(t, ctx, r.Sample(ctx))
	r.Note(ctx, call(200))
	r.Gauge("g", "s", "", 1)
	x.Shutdown(ctx)
}

func TestSettings(t *testing.T) {
	t.Parallel()
	read := func(settings map[string]string) (observe.Config, error) {
		return observe.FromEnv(func(name string) string { return settings[name] })
	}
	for name, off := range map[string]map[string]string{
		"without an endpoint": {"OTEL_SERVICE_NAME": "x"},
		"when it is disabled": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"},
		"when both are none": {
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none",
		},
	} {
		c, err := read(off)
		require.NoError(t, err)
		require.Nil(t, observe.New(c, http.DefaultClient, slog.Default()), name)
	}
	c, err := read(map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT":         "http://c:4318/base/",
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "https://prometheus/api/v1/otlp/v1/metrics",
		"OTEL_EXPORTER_OTLP_METRICS_HEADERS":  "a=1", "OTEL_EXPORTER_OTLP_HEADERS": "b=2",
		"OTEL_RESOURCE_ATTRIBUTES": "service.name=all,k=v%2Cw",
	})
	require.NoError(t, err)
	require.Equal(t, "http://c:4318/base/v1/traces", c.Traces.URL)
	require.Equal(t, "https://prometheus/api/v1/otlp/v1/metrics", c.Metrics.URL)
	require.Equal(t, http.Header{"A": {"1"}}, c.Metrics.Headers)
	require.Equal(t, http.Header{"B": {"2"}}, c.Traces.Headers)
	require.Equal(t, "all", c.Service)
	require.Equal(t, map[string]string{"k": "v,w"}, c.Resource)

	faulty := map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317", "OTEL_EXPORTER_OTLP_HEADERS": "s3cret",
		"OTEL_BSP_SCHEDULE_DELAY": "soon", "OTEL_TRACES_SAMPLER": "some", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
	}
	_, err = read(faulty)
	for name := range faulty {
		if name != "OTEL_EXPORTER_OTLP_HEADERS" { // not read if nothing is pushed
			require.ErrorContains(t, err, name)
		}
	}
	faulty["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://c"
	_, err = read(faulty)
	require.ErrorContains(t, err, "OTEL_EXPORTER_OTLP_HEADERS")
	require.NotContains(t, err.Error(), "s3cret")
}

func TestLogLinesNameTheirTrace(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	log := slog.New(observe.LogHandler(slog.NewJSONHandler(&b, nil))).With("revision", "r1")
	ctx := trace.Start(t.Context(), parent)
	log.InfoContext(ctx, "in a trace")
	log.Info("outside")
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Len(t, lines, 2)
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &line))
	require.Equal(t, trace.ID(ctx), line["trace_id"])
	require.Equal(t, trace.Span(ctx), line["span_id"])
	require.Equal(t, "r1", line["revision"])
	require.NotContains(t, lines[1], "trace_id")
}
