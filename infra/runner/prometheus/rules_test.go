package prometheus_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
)

const scoreRule = `groups: [{name: score, rules: [{
	alert: low, expr: SCA_score < 40, labels: {severity: high}, annotations: {value: "{{ $value }}"}}]}]`

// evaluate starts the rules of a directory; their alerts come out of the channel.
func evaluate(t *testing.T, s *prometheus.Server, dir string) <-chan *prometheus.Alert {
	t.Helper()
	said := make(chan *prometheus.Alert, 1000)
	require.NoError(t, s.Evaluate(prometheus.RuleOptions{
		Dir: dir, Interval: 50 * time.Millisecond, URL: "http://littoral",
		Send: func(alerts ...*prometheus.Alert) {
			for _, a := range alerts {
				said <- a
			}
		},
	}))
	return said
}

func await(t *testing.T, said <-chan *prometheus.Alert, what func(*prometheus.Alert) bool) *prometheus.Alert {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case a := <-said:
			if what(a) {
				return a
			}
		case <-deadline:
			t.Fatal("nothing of the kind was said")
		}
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

func reload(t *testing.T, s *prometheus.Server) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	s.ReloadHandler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/-/reload", nil))
	return w
}

func TestARuleFiresAndResolves(t *testing.T) {
	t.Parallel()
	s, dir := open(t, t.TempDir()), t.TempDir()
	require.NoError(t, s.Append(t.Context(), samples(time.Now(), 30)))
	said := evaluate(t, s, dir)
	write(t, dir, "score.yaml", scoreRule)
	require.Equal(t, http.StatusOK, reload(t, s).Code)

	a := await(t, said, func(a *prometheus.Alert) bool { return a.Labels.Get("agent_hostname") == "a" })
	require.Equal(t, "low", a.Name())
	require.Equal(t, "high", a.Labels.Get("severity"))
	require.Equal(t, "30", a.Annotations.Get("value"))
	require.True(t, a.EndsAt.After(time.Now()), "it fires")
	require.Contains(t, a.GeneratorURL, "http://littoral/graph?g0.expr=SCA_score")
	require.Contains(t, data(t, s, "/api/v1/rules"), `"state":"firing"`)
	require.Contains(t, data(t, s, "/api/v1/alerts"), `"alertname":"low"`)

	require.NoError(t, s.Append(t.Context(), samples(time.Now(), 80)))
	await(t, said, func(a *prometheus.Alert) bool {
		return a.Labels.Get("agent_hostname") == "a" && !a.EndsAt.After(time.Now())
	})
}

func TestABrokenFileLeavesTheOtherRulesAsTheyWere(t *testing.T) {
	t.Parallel()
	s, dir := open(t, t.TempDir()), t.TempDir()
	require.NoError(t, s.Append(t.Context(), samples(time.Now(), 30)))
	write(t, dir, "score.yml", scoreRule)
	said := evaluate(t, s, dir)
	await(t, said, func(*prometheus.Alert) bool { return true })
	write(t, dir, "broken.yaml", "groups: [{name: broken, rules: [{alert: a, expr: 'sum('}]}]")
	require.Equal(t, http.StatusInternalServerError, reload(t, s).Code)
	require.Contains(t, data(t, s, "/api/v1/rules"), `"name":"score"`)
	require.NoError(t, os.Remove(filepath.Join(dir, "broken.yaml")))
	require.NoError(t, os.Remove(filepath.Join(dir, "score.yml")))
	require.Equal(t, http.StatusOK, reload(t, s).Code)
	require.JSONEq(t, `{"groups":[]}`, data(t, s, "/api/v1/rules"))
}

func TestEvaluate_beginsThoughAFileIsBroken(t *testing.T) {
	t.Parallel()
	s, dir := open(t, t.TempDir()), t.TempDir()
	write(t, dir, "broken.yaml", "groups: 5")
	require.Error(t, s.Evaluate(prometheus.RuleOptions{Dir: dir, Send: func(...*prometheus.Alert) {}}))
	write(t, dir, "broken.yaml", scoreRule)
	require.Equal(t, http.StatusOK, reload(t, s).Code)
}
