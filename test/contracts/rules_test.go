package contracts_test

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
)

// icosRules is the request of ICOS's policy manager for a policy.
const icosRules = `{"data": {"groups": [{"name": "hello-1-cpu", "rules": [{
	"alert": "hello-1-cpu:rule-0", "expr": "avg(rate(node_cpu_seconds_total{mode=\"idle\"}[2m])) < 0.2",
	"for": "0", "labels": {},
	"annotations": {"plm_id": "p1", "plm_expr_value": "{{ $value }}", "plm_measurement_backend": "prom-1"}}]}]}}`

// TestRules: a group has the same id in every spelling, however often it is stored, and is gone after it was deleted.
func TestRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := rules.ID("hello-1-cpu")
	path := filepath.Join(given["RULES_DIR"], id+".yaml")
	type answer struct {
		File  string
		Files []string
	}
	for _, base := range []string{"/rules", "/rules/", "/api/v1/rules", "/api/v1/rules/"} {
		got := decode[answer](t, w.operator.call(t, http.MethodPost, base, icosRules).is(t, http.StatusOK))
		require.Equal(t, answer{id, []string{id}}, got)
		require.FileExists(t, path)
		list := w.viewer.call(t, http.MethodGet, base, "").is(t, http.StatusOK)
		require.Contains(t, string(list.body), `"file":"`+id+`"`)
	}
	w.viewer.call(t, http.MethodDelete, "/rules/"+id, "").refused(t, http.StatusForbidden)
	w.operator.call(t, http.MethodDelete, "/api/v1/rules/"+id, "").is(t, http.StatusNoContent)
	require.NoFileExists(t, path)
	for _, gone := range []string{id, "..", "%2e%2e%2fx", "own", "a%00b"} {
		a := w.as(auth.Admin).call(t, http.MethodDelete, "/rules/"+gone, "")
		require.Contains(
			t,
			[]int{http.StatusNotFound, http.StatusTemporaryRedirect, http.StatusMethodNotAllowed},
			a.status,
			gone,
		)
	}
	both := `{"groups": [{"name": "one", "rules": [{"record": "a", "expr": "1"}]},
		{"name": "two", "rules": [{"record": "b", "expr": "2"}]}]}`
	got := decode[answer](t, w.operator.call(t, http.MethodPost, "/rules/", both).is(t, http.StatusOK))
	require.Equal(t, []string{rules.ID("one"), rules.ID("two")}, got.Files)
	broken := `{"groups": [{"name": "one", "rules": [{"alert": "a", "expr": "sum("}]}]}`
	fields := w.operator.call(t, http.MethodPost, "/rules/", broken).
		fields(t)
	require.Equal(t, []string{"groups[0].rules[0].expr"}, fields)
}
