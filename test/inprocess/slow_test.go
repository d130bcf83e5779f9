package inprocess_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/fleet"
	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/inprocess"
	"github.com/littoral-project/littoral/triggers"
)

const small = `name: small
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 10m, memory: 16Mi}
    manifests: [{name: web, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}}]
`

// TestSlowTelemetry_leavesNoApplicationWithoutADecisionOrAReason: telemetry of which some or all queries are not
// answered within QUERY_TIMEOUT. The aggregator, the matchmaker and all others are the real ones.
func TestSlowTelemetry_leavesNoApplicationWithoutADecisionOrAReason(t *testing.T) {
	engine := prometheustest.New(t)
	f, err := fleet.New(fleet.Options{
		Plan: fleet.Default(), File: filepath.Join(t.TempDir(), "fleet.json"), Append: engine.Append,
	})
	require.NoError(t, err)
	var slow atomic.Value // the text of the queries that are not answered in time
	slow.Store("tlum_orch_info")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, _ := slow.Load().(string); text != "" && strings.Contains(r.FormValue("query"), text) {
			<-r.Context().Done() // until nobody waits any longer
			return
		}
		engine.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	given := map[string]string{
		"PROMETHEUS_ADDRESS": server.URL, "QUERY_TIMEOUT": "2s", "RULES_BACKEND": "files", "RULES_DIR": t.TempDir(),
	}

	broker, err := inprocess.NewBroker(triggers.Files)
	require.NoError(t, err)
	issuer, db := inprocess.NewIssuer(t), storetest.NewWithPublisher(t, broker)
	routes, consumers, err := inprocess.Mount(function.Platform{DB: db, Auth: issuer.Verifier(), Settings: settings.Map(given)})
	require.NoError(t, err)
	broker.Connect(consumers, true)

	submit := func() {
		r := httptest.NewRequest(http.MethodPost, "/jobmanager/groups", bytes.NewReader([]byte(small)))
		r.Header.Set("Authorization", "Bearer "+issuer.Token(t, auth.Operator))
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, r)
		require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
		require.NoError(t, db.Flush(t.Context()))
	}
	// undecided counts components with neither a place nor a reason, placed those with a place.
	count := func(what string) (n int) {
		require.NoError(t, db.QueryRow(t.Context(), `select count(*) from jobs where `+what).Scan(&n))
		return n
	}
	const (
		placed    = `cluster <> ''`
		undecided = `cluster = '' and conditions @> '[{"reason": "AwaitingForTarget", "message": ""}]'`
	)
	require.NoError(t, f.Emit(t.Context()))

	submit() // before anything was ever seen
	require.Error(t, broker.TickOne(t.Context(), "aggregator-tick"), "nobody knows what there is")
	require.Zero(t, count(placed))
	require.Zero(t, count(undecided), "it waits for a reason that is told")

	slow.Store("kube_pod_info") // one query, which says nothing about what there is
	require.NoError(t, broker.TickOne(t.Context(), "aggregator-tick"))
	require.NoError(t, db.Flush(t.Context()))
	require.Equal(t, 1, count(placed), "the rest of the picture is enough")

	slow.Store("tlum_orch_info") // again, now with a picture
	require.Error(t, broker.TickOne(t.Context(), "aggregator-tick"))
	submit()
	require.Equal(t, 2, count(placed), "by the picture that is stored")
	require.Zero(t, count(undecided))
}
