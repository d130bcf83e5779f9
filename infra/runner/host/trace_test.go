package host

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/littoral-project/littoral/shared/store/storetest"
)

// spans takes OTLP as a collector does and keeps the spans of one trace by their ids.
type spans struct {
	mu    sync.Mutex
	trace string
	all   map[string]told
}

type told struct{ function, name, kind, parent, failure string }

// follow begins with another trace.
func (s *spans) follow(trace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace, s.all = trace, map[string]told{}
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	request := ptraceotlp.NewExportRequest()
	if err != nil || request.UnmarshalJSON(body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rs := range request.Traces().ResourceSpans().All() {
		name, _ := rs.Resource().Attributes().Get("service.name")
		for _, ss := range rs.ScopeSpans().All() {
			for _, one := range ss.Spans().All() {
				if one.TraceID().String() != s.trace {
					continue
				}
				t := told{name.Str(), one.Name(), one.Kind().String(), one.ParentSpanID().String(), ""}
				if one.Status().Code() == ptrace.StatusCodeError {
					t.failure = one.Status().Message()
				}
				s.all[one.SpanID().String()] = t
			}
		}
	}
	w.WriteHeader(http.StatusOK)
}

// path reports whether the functions were reached one after the other, each by a span below one of the function before.
func (s *spans) path(root string, functions ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	below := map[string]bool{root: true}
	for _, function := range functions {
		next := map[string]bool{}
		for id, one := range s.all {
			if below[one.parent] && one.function == function {
				next[id] = true
			}
		}
		below = next
	}
	return len(below) > 0
}

// whole reports whether no span hangs in the air.
func (s *spans) whole(root string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if _, known := s.all[one.parent]; !known && one.parent != root {
			return false
		}
	}
	return true
}

// TestOneTraceShowsTheWholeChain: from the caller's own span through the outbox, the Broker and every reaction to the
// last effect, which is that Prometheus is told of new rules.
func TestOneTraceShowsTheWholeChain(t *testing.T) { //nolint:paralleltest // it sets the environment of the process
	const caller = "00f067aa0ba902b7"
	seen := &spans{}
	collector := httptest.NewServer(seen)
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", collector.URL+"/v1/traces")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
	o := options(newHome(t))
	o.Database = storetest.URL(t)
	h := start(t, o)
	require.Eventually(t, func() bool { // else the chain would go on in the trace of the first topology
		var past []any
		return ask(t, h.URL(), o.Home, "viewer", "GET", "/jobmanager/history", "", &past) == http.StatusOK && len(past) > 0
	}, patience, 50*time.Millisecond)

	text := strings.Replace(example(t), "policies:\n", "policies:\n      - security: medium\n", 1)
	whole := func() bool { // the delivery to the function for rules, its call, and the call that this leads to
		return seen.whole(caller) && seen.path(caller, "jobmanager-group-create", "matchmaker-place", "policymanager-follow",
			"policymanager-rule", "policymanager-rule", "telemetry-rule-create", "telemetry-rule-create")
	}
	for attempt := 1; ; attempt++ {
		// A tick of policymanager-reconcile may be the first to carry the rules over, in a trace of its own.
		require.LessOrEqual(t, attempt, 5)
		trace := fmt.Sprintf("4bf92f3577b34da6a3ce929d0e0e47%02x", attempt)
		seen.follow(trace)
		groups := h.URL() + "/jobmanager/groups"
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, groups, strings.NewReader(text))
		require.NoError(t, err)
		r.Header.Set("Traceparent", "00-"+trace+"-"+caller+"-01")
		r.Header.Set("Authorization", "Bearer "+tokenOf(t, h, "operator"))
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusCreated, resp.StatusCode)
		if assert.Eventually(&testing.T{}, whole, patience/4, 20*time.Millisecond) {
			break
		}
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	for _, one := range seen.all {
		require.Empty(t, one.failure, "%+v", one)
	}
}

func tokenOf(t *testing.T, h *Host, role string) string {
	t.Helper()
	token, err := os.ReadFile(h.TokenFile(role))
	require.NoError(t, err)
	return strings.TrimSpace(string(token))
}
