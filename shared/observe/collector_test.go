package observe_test

import (
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/littoral-project/littoral/shared/observe"
)

// collector receives OTLP and decodes it like the OpenTelemetry Collector.
type collector struct {
	*httptest.Server

	t      *testing.T
	answer atomic.Int64  // status of answers; 0 = 200
	hold   chan struct{} // unless nil, answers wait for it

	mu      sync.Mutex
	spans   []told
	metrics []pmetricotlp.ExportRequest
	headers []http.Header
	pushes  int
}

// told is a span with its resource.
type told struct {
	ptrace.Span

	resource map[string]any
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{t: t}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.hold != nil {
		<-c.hold
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pushes++
	if code := int(c.answer.Load()); code != 0 {
		w.WriteHeader(code)
		return
	}
	var reader io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			c.t.Error(err)
			return
		}
		reader = z
	}
	body, err := io.ReadAll(reader)
	if err == nil {
		err = c.receive(r, body)
	}
	if err != nil {
		c.t.Errorf("%s: %v: %s", r.URL.Path, err, body)
	}
	c.headers = append(c.headers, r.Header)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"partialSuccess":{}}`)
}

func (c *collector) receive(r *http.Request, body []byte) error {
	switch r.URL.Path {
	case "/v1/traces":
		request := ptraceotlp.NewExportRequest()
		if err := request.UnmarshalJSON(body); err != nil {
			return err
		}
		for _, rs := range request.Traces().ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					c.spans = append(c.spans, told{s, rs.Resource().Attributes().AsRaw()})
				}
			}
		}
		return nil
	case "/v1/metrics":
		request := pmetricotlp.NewExportRequest()
		c.metrics = append(c.metrics, request)
		return request.UnmarshalJSON(body)
	}
	c.t.Errorf("pushed to %s", r.URL.Path)
	return nil
}

func (c *collector) got() []told {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans
}

func (c *collector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pushes
}

// exporter pushes to the collector with these settings.
func (c *collector) exporter(t *testing.T, settings map[string]string) *observe.Exporter {
	t.Helper()
	return newExporter(t, c.URL, settings)
}

func newExporter(t *testing.T, endpoint string, settings map[string]string) *observe.Exporter {
	t.Helper()
	config, err := observe.FromEnv(func(name string) string {
		if value, set := settings[name]; set {
			return value
		}
		if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
			return endpoint
		}
		return ""
	})
	require.NoError(t, err)
	return observe.New(config, &http.Client{}, slog.New(slog.DiscardHandler))
}
