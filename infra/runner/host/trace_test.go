package host

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/otlp"
)

// TestOneTraceShowsTheWholeChain follows a trace from the caller's own span through the outbox, the Broker and every
// reaction to the last effect: Prometheus reloads its rules.
func TestOneTraceShowsTheWholeChain(t *testing.T) {
	const caller = "00f067aa0ba902b7"
	seen := &otlp.Collector{}
	collector := httptest.NewServer(seen)
	defer collector.Close()
	o := options(newHome(t))
	o.Settings = settings.Map(map[string]string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector.URL + "/v1/traces", "OTEL_BSP_SCHEDULE_DELAY": "20",
	})
	o.Database = storetest.URL(t)
	h := start(t, o)
	require.Eventually(t, func() bool { // otherwise the chain would continue in the trace of the first topology
		var past []any
		return ask(t, h.URL(), o.Home, "viewer", "GET", "/jobmanager/history", "", &past) == http.StatusOK && len(past) > 0
	}, patience, 50*time.Millisecond)

	text := strings.Replace(example(t), "policies:\n", "policies:\n      - security: medium\n", 1)
	whole := func() bool { // the delivery to the function for rules, its call, and the call that this leads to
		return seen.Whole(caller) && seen.Path(caller, "jobmanager-group-create", "matchmaker-place", "policymanager-follow",
			"policymanager-rule", "policymanager-rule", "telemetry-rule-create", "telemetry-rule-create")
	}
	for attempt := 1; ; attempt++ {
		// A tick of policymanager-reconcile may be the first to store the rules, in its own trace.
		require.LessOrEqual(t, attempt, 5)
		trace := fmt.Sprintf("4bf92f3577b34da6a3ce929d0e0e47%02x", attempt)
		seen.Follow(trace)
		groups := h.URL() + "/jobmanager/groups"
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, groups, strings.NewReader(text))
		require.NoError(t, err)
		r.Header.Set("Traceparent", "00-"+trace+"-"+caller+"-01")
		token, err := api.TokenFile(h.TokenFile("operator"))()
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusCreated, resp.StatusCode)
		if assert.Eventually(&testing.T{}, whole, patience/4, 20*time.Millisecond) {
			break
		}
	}
	for _, one := range seen.Spans() {
		require.Empty(t, one.Failure, "%+v", one)
	}
}
