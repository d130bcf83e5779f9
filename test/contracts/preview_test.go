package contracts_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// hosts is a policy about all hosts, which are in the fleet's telemetry.
func hosts(limit float64) body {
	return body{
		"name": "hosts", "subject": body{"hostId": "*", "agentId": "*"}, "variables": body{"maxCpuUsagePercent": limit},
		"spec": body{"templateName": "cpu-usage-host"}, "action": body{"url": "", "httpMethod": "POST"},
	}
}

func TestRender_showsWhatAPolicyWouldWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unchanged(t, func() {
		shown := decode[body](t, w.operator.send(t, http.MethodPost, polman+"/render", hosts(0.5)).is(t, http.StatusOK))
		require.Contains(t, shown["expr"], "node_cpu_seconds_total")
		require.Contains(t, shown, "series")
		require.NotContains(t, shown, "unavailable")
		custom := usage("x")
		shown = decode[body](t, w.operator.send(t, http.MethodPost, polman+"/render", custom).is(t, http.StatusOK))
		require.Equal(t, 0.0, shown["series"])
		require.Nil(t, shown["value"])
		security := body{
			"subject": body{"type": "custom", "cluster": "*"}, "spec": body{"expr": `SCA_score{ {{subject_label_selector}} }`, "violatedIf": "< 1000"},
		}
		w.as("admin").send(t, http.MethodPost, polman+"/render", security).is(t, http.StatusOK)
		w.operator.send(t, http.MethodPost, polman+"/render", body{"subject": body{"hostId": "h", "agentId": "a"}}).fields(t)
		constraint := hosts(1)
		constraint["spec"] = body{"type": "constraints", "constraints": body{"a": "b"}}
		w.operator.send(t, http.MethodPost, polman+"/render", constraint).refused(t, http.StatusConflict)
	})
}

func TestBacktest_tellsWhenAPolicyWouldHaveFired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now().UTC()
	ask := func(change body) *answer {
		q := body{"policy": hosts(0.5), "from": now.Add(-time.Minute), "to": now, "step": "15s"}
		for k, v := range change {
			q[k] = v
		}
		return w.operator.send(t, http.MethodPost, polman+"/backtest", q)
	}
	w.unchanged(t, func() {
		past := decode[body](t, ask(nil).is(t, http.StatusOK))
		require.Equal(t, 5.0, past["evaluations"])
		require.NotNil(t, past["episodes"])
		require.Equal(t, 0.5, past["limit"])
		shown := decode[body](t, w.as("admin").send(t, http.MethodPost, polman+"/backtest", body{"from": now.Add(-time.Minute), "policy": body{
			"subject": body{"type": "custom", "cluster": "*"}, "spec": body{"expr": "up", "violatedIf": "< 1"},
		}}).is(t, http.StatusOK))
		require.Empty(t, shown["episodes"])
		require.NotEmpty(t, shown["courses"], "what it looks at is there although it is not violated")
		for interval, evaluations := range map[string]float64{"": 5, "30s": 3, "500ms": 61} {
			rare := hosts(0.5)
			rare["properties"] = body{"interval": interval}
			past := decode[body](t, ask(body{"policy": rare, "step": nil}).is(t, http.StatusOK))
			require.Equal(t, evaluations, past["evaluations"], "as often as the rule of %q would be", interval)
		}
		for field, change := range map[string]body{
			"from": {"from": nil}, "to": {"to": now.Add(-time.Hour)}, "step": {"step": "1s", "from": now.AddDate(-1, 0, 0)},
		} {
			require.Equal(t, []string{field}, ask(change).fields(t))
		}
		for _, step := range []any{"soon", 1e-11} {
			require.Equal(t, []string{"step"}, ask(body{"step": step}).fields(t))
		}
		// The telemetry store has a precision of milliseconds, and limits the number of steps.
		fine := decode[body](t, ask(body{"step": 1.0009, "from": now.Add(-11008 * time.Second)}).is(t, http.StatusOK))
		require.Equal(t, 10998.0, fine["evaluations"])
	})
}

func TestTemplates_areListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list := decode[[]body](t, w.viewer.get(t, polman+"/templates/"))
	require.Len(t, list, 12)
	require.Contains(t, list[0], "variables")
}

func TestMetrics_tellHowPoliciesStand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _, p := w.loaded(t, "none")
	odd := usage(`a "quoted" \ one`)
	w.policy(t, odd)
	w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", time.Now()))).is(t, http.StatusOK)
	a := w.viewer.get(t, "/polman/metrics")
	require.Contains(t, a.header.Get("Content-Type"), "text/plain; version=0.0.4")
	text := string(a.body)
	require.Contains(t, text, `plm_policy_enforced{icos_app_component="*",icos_app_instance="`+g.ID+`"`)
	require.Contains(t, text, `name="`+p.Name+`"} 0`)
	require.Contains(t, text, `icos_app_instance="a \"quoted\" \\ one"`)
	for _, stage := range []string{"alert", "judge", "act", "total"} {
		require.Contains(t, text, `plm_reaction_seconds_count{stage="`+stage+`"} 1`)
		require.Contains(t, text, `plm_reaction_seconds_bucket{stage="`+stage+`",le="+Inf"} 1`)
	}
}

func TestStatus_isAPageWithoutSurprises(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	given := usage("x")
	given["name"] = `<script>alert("x")</script>`
	w.policy(t, given)
	a := w.viewer.get(t, "/polman/status/")
	require.Contains(t, a.header.Get("Content-Type"), "text/html")
	require.NotContains(t, string(a.body), "<script>")
	require.Contains(t, string(a.body), "&lt;script&gt;")
}

// TestAction_callsWhoThePolicyNames: with the violation's payload and the extra parameters.
func TestAction_callsWhoThePolicyNames(t *testing.T) {
	t.Parallel()
	type seen struct {
		method, query string
		body          body
	}
	got := make(chan seen, 4)
	fail := true
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fail {
			fail = false
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		s := seen{method: r.Method, query: r.URL.Query().Get("subject.appComponent")}
		text, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(text, &s.body)
		got <- s
	}))
	t.Cleanup(target.Close)
	w := newWorld(t)
	for _, method := range []string{"POST", "GET"} {
		given := usage("instance-" + method)
		given["action"] = body{"url": target.URL + "/hook", "httpMethod": method, "extraParams": body{"remediation": "redeploy", "k": "v"}}
		p := w.policy(t, given)
		a := alert(p, "instance-"+method, "firing", time.Now())
		w.alertmanager().send(t, http.MethodPost, webhook, notice(a)).is(t, http.StatusOK)
		if method == "POST" {
			require.Len(t, w.Broker.Failures(), 1, "what fails is delivered again")
			w.again(t, "webhook.requested")
		}
		s := <-got
		require.Equal(t, method, s.method)
		if method == "GET" {
			require.Equal(t, "web", s.query)
			continue
		}
		require.Equal(t, "redeploy", s.body["remediation"])
		require.Equal(t, "v", s.body["k"])
		require.Equal(t, "0.92", s.body["currentValue"])
		require.Equal(t, p.ID, s.body["policyId"])
		require.Equal(t, "web", s.body["subject"].(body)["appComponent"])
		require.Equal(t, "h1", s.body["extraLabels"].(body)["icos_host_id"])
		require.NoError(t, uuid.Validate(s.body["id"].(string)))
		w.again(t, "webhook.requested")
		require.Empty(t, got, "a repeat calls nobody")
	}
}

// TestAction_callsNobodyAboutWhatHasEnded: the violation ended while the service could not be reached.
func TestAction_callsNobodyAboutWhatHasEnded(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(target.Close)
	w := newWorld(t)
	g, _ := w.running(t, freeShop)
	given := usage(g.ID)
	given["action"] = body{"url": target.URL + "/hook", "httpMethod": "POST"}
	p, start := w.policy(t, given), time.Now().Add(-time.Minute)
	for _, status := range []string{"firing", "resolved"} {
		w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, status, start))).is(t, http.StatusOK)
	}
	require.Len(t, w.Broker.Failures(), 1)
	require.Equal(t, int32(1), calls.Load())
	w.again(t, "webhook.requested")
	require.Equal(t, int32(1), calls.Load())
	require.Contains(t, w.messages(t, g.ID, "policy.skipped")[0], "had ended when its turn came")
}

// again delivers every event of that type once more.
func (w *world) again(t testing.TB, kind string) {
	t.Helper()
	for _, e := range w.Broker.Accepted() {
		if strings.Contains(e.Type(), kind) {
			require.NoError(t, w.Broker.Deliver(t.Context(), e))
		}
	}
}

// TestWebhook_knowsAnAlertmanagerByTheSharedSecret: for an Alertmanager that cannot get access tokens.
func TestWebhook_knowsAnAlertmanagerByTheSharedSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text, err := json.Marshal(notice())
	require.NoError(t, err)
	post := func(authorization string) *answer {
		return w.nobody.call(t, http.MethodPost, webhook, string(text), "Authorization", authorization)
	}
	post("Bearer "+alertmanagerSecret).is(t, http.StatusOK)
	post("Basic YW06czNjcmV0LW9mLXRoZS1hbGVydG1hbmFnZXI=").is(t, http.StatusOK)
	post("Bearer wrong").refused(t, http.StatusUnauthorized)
	post("Basic YW06d3Jvbmc=").refused(t, http.StatusUnauthorized)
	post("").refused(t, http.StatusUnauthorized)
	w.nobody.call(t, http.MethodGet, polman+"/policies", "", "Authorization", "Bearer "+alertmanagerSecret).
		refused(t, http.StatusUnauthorized)
	w.alertmanager().call(t, http.MethodGet, polman+"/policies", "").refused(t, http.StatusForbidden)
}

const alertmanagerSecret = "s3cret-of-the-alertmanager"
