package contracts_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheTraceGoesThrough: from the caller's request to the effects of reactions.
func TestTheTraceGoesThrough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.operator.call(t, http.MethodPost, "/jobmanager/groups", hubShop).is(t, http.StatusCreated)
	require.Contains(t, a.header.Get("Traceparent"), a.trace)
	type entry struct{ Event, TraceID string }
	var events []string
	for _, e := range decode[[]entry](t, w.viewer.get(t, "/jobmanager/history?app="+decode[group](t, a).ID)) {
		require.Equal(t, a.trace, e.TraceID, e.Event)
		events = append(events, e.Event)
	}
	require.Contains(t, events, "application.placed", "which the matchmaker did")

	const odd = "00-00000000000000000000000000000000-0000000000000000-01"
	for _, parent := range []string{"junk", odd} {
		r := w.nobody.call(t, http.MethodGet, "/nowhere", "", "Traceparent", parent)
		require.Regexp(t, `"traceId":"[0-9a-f]{32}"`, string(r.body))
		require.NotContains(t, string(r.body), "00000000000000000000000000000000")
	}
}

// TestAStatusForAWholeGroup is the form in D3.3 besides the one for a job.
func TestAStatusForAWholeGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j := w.running(t, hubShop)
	sent := body{"job_group_id": g.ID, "owner_id": hubAgent, "status": "Degraded"}
	seen := decode[[]body](t, w.hub.send(t, http.MethodPut, "/jobmanager/status/", sent).is(t, http.StatusOK))
	require.Len(t, seen, 1)
	require.Equal(t, "Degraded", w.job(t, j.ID).State)
	w.unchanged(t, func() {
		sent["owner_id"] = edgeAgent
		a := w.edge.send(t, http.MethodPut, "/jobmanager/status/", sent)
		require.Contains(t, []int{http.StatusNotFound, http.StatusConflict}, a.status, "it owns nothing of it: %s", a.body)
		nothing := w.edge.send(t, http.MethodPut, "/jobmanager/status/", body{"owner_id": edgeAgent, "status": "Available"})
		require.Contains(t, []int{http.StatusNotFound, http.StatusUnprocessableEntity}, nothing.status, "%s", nothing.body)
	})
}
