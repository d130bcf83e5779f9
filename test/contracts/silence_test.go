package contracts_test

import (
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	whenSilent = "policies:\n  - {name: silent, redeployOnLostTelemetry: 5m}\n"
	silentShop = freeShop + whenSilent
)

var sinceIn = regexp.MustCompile(`< time\(\) - ([0-9]+)$`)

// since is the time from which the rule of a policy about lost telemetry counts samples.
func (w *world) since(t testing.TB, p policy) time.Time {
	t.Helper()
	expr, _ := w.seePolicy(t, p.ID).Status.Rendered["expr"].(string)
	found := sinceIn.FindStringSubmatch(expr)
	require.NotNil(t, found, expr)
	seconds, err := strconv.ParseInt(found[1], 10, 64)
	require.NoError(t, err)
	return time.Unix(seconds, 0)
}

// TestSilence_countsFromTheLastStart: samples from before an application was stopped do not make it silent now.
func TestSilence_countsFromTheLastStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := time.Now().Truncate(time.Second)
	g, j := w.running(t, silentShop)
	p := w.policiesOf(t, g.ID)["silent"]
	first := w.since(t, p)
	require.False(t, first.Before(before))
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, "").is(t, http.StatusOK)
	w.finish(t, w.hub, hubAgent, w.job(t, j.ID))

	_, err := w.DB.Exec(t.Context(), `update policies set state = jsonb_set(state, '{started}', '"2026-01-01T00:00:00Z"'),
rendered = jsonb_set(rendered, '{expr}', to_jsonb(replace(rendered ->> 'expr', $1, '0')))`, strconv.FormatInt(first.Unix(), 10))
	require.NoError(t, err)
	require.Zero(t, w.since(t, p).Unix())
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/start/"+g.ID, "").is(t, http.StatusOK)
	again := w.since(t, p)
	require.False(t, again.Before(first))

	w.operator.call(t, http.MethodPost, polman+"/policies/"+p.ID+"/variables/timeout/7m", "").is(t, http.StatusNoContent)
	require.Equal(t, again, w.since(t, p), "changing the policy starts nothing")
	w.operator.call(t, http.MethodPost, polman+"/policies/"+p.ID+"/deactivate", "").is(t, http.StatusNoContent)
	w.operator.call(t, http.MethodPost, polman+"/policies/"+p.ID+"/activate", "").is(t, http.StatusNoContent)
	require.Equal(t, again, w.since(t, p))
}

// TestSilence_ofThePlaceBefore: the component had already left a lost node when the alert about its silence arrives,
// which names no node. If the component sends no telemetry from its new place either, the same alert just continues,
// and no new one is sent.
func TestSilence_ofThePlaceBefore(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, document string) (w *world, g group, j job, tell func(status string)) {
		t.Helper()
		w = newWorld(t)
		g, j = w.running(t, document+whenSilent)
		p, at := w.policiesOf(t, g.ID)["silent"], time.Now()
		return w, g, j, func(status string) {
			a := alert(p, g.ID, status, at)
			delete(a["labels"].(body), "icos_host_id") // alert makes it
			w.alertmanager().send(t, http.MethodPost, webhook, notice(a)).is(t, http.StatusOK)
		}
	}
	later := func(t *testing.T, w *world) {
		t.Helper()
		_, err := w.DB.Exec(t.Context(), `update history set at = at - interval '6 min'`)
		require.NoError(t, err)
		w.laterBy(t, "6 min")
	}
	t.Run("and it is not heard of here either", func(t *testing.T) {
		t.Parallel()
		w, g, j, tell := start(t, freeShop)
		tell("firing")
		require.Equal(t, j.Targets, w.job(t, j.ID).Targets)
		held := w.messages(t, g.ID, "policy.held")
		require.Len(t, held, 1)
		require.Contains(t, held[0], "web was placed less than 5m0s ago")
		later(t, w)
		require.NotEqual(t, j.Targets, w.job(t, j.ID).Targets)
		w.legal(t)
	})
	t.Run("and it is heard of here", func(t *testing.T) {
		t.Parallel()
		w, g, j, tell := start(t, freeShop)
		tell("firing")
		tell("resolved")
		later(t, w)
		require.Equal(t, j.Targets, w.job(t, j.ID).Targets)
		require.Len(t, w.messages(t, g.ID, "policy.skipped"), 1)
	})
	t.Run("and it is nowhere yet", func(t *testing.T) {
		t.Parallel()
		w, g, j, tell := start(t, hubShop)
		later(t, w)
		w.silence(t, "hub-1", 10*time.Minute)
		require.NoError(t, w.Broker.TickOne(t.Context(), "jobmanager-displace"))
		require.NoError(t, w.Broker.Drain(t.Context()))
		require.Empty(t, w.job(t, j.ID).Targets.Node)
		tell("firing")
		require.Contains(t, w.messages(t, g.ID, "policy.held")[0], "web waits for a place")

		w.silence(t, "hub-1", 0)
		require.Equal(t, j.Targets, w.job(t, j.ID).Targets)
		w.laterBy(t, "6 min")
		require.Contains(t, w.messages(t, g.ID, "policy.held")[1], "web was placed less than 5m0s ago")
		later(t, w)
		require.Len(t, w.messages(t, g.ID, "policy.stayed"), 1, "its turn has come: there is no other node for it")
	})
}

// TestSilence_ofHosts: rules about lost telemetry take into account how long a host may be silent here; a shorter
// timeout limits that.
func TestSilence_ofHosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lost := func(instance, timeout string) body {
		given := usage(instance)
		given["spec"], given["variables"] = body{"templateName": "redeploy-on-lost-telemetry"}, body{"timeout": timeout}
		return given
	}
	looks := func(at string, given any) {
		expr := decode[body](t, w.operator.send(t, http.MethodPost, polman+at, given).is(t, http.StatusOK))["expr"]
		require.Contains(t, expr, `icos_agent_id!="self"}[3m]`, at)
	}
	looks("/render", lost("x", "5m"))
	looks("/backtest", body{"policy": lost("x", "5m"), "from": time.Now().Add(-time.Minute), "step": "15s"})

	p := w.policy(t, lost("x", "5m"))
	watches := func(gap string) {
		t.Helper()
		require.Contains(t, w.seePolicy(t, p.ID).Status.Rendered["expr"], `icos_agent_id!="self"}[`+gap+`]`)
	}
	watches("3m")
	w.operator.call(t, http.MethodPost, polman+"/policies/"+p.ID+"/variables/timeout/30s", "").is(t, http.StatusNoContent)
	watches("30s")
	w.operator.call(t, http.MethodDelete, polman+"/policies/"+p.ID+"/variables/timeout", "").is(t, http.StatusNoContent)
	watches("3m")
	w.operator.send(t, http.MethodPut, polman+"/policies/"+p.ID, lost("x", "2m")).is(t, http.StatusOK)
	watches("2m")
	w.operator.send(t, http.MethodPut, polman+"/policies/"+p.ID, lost("x", "7m")).is(t, http.StatusOK)
	watches("3m")

	g, _ := w.running(t, silentShop)
	p = w.policiesOf(t, g.ID)["silent"]
	watches("3m")
	for at, event := range map[string]body{
		"/icos":     {"app_instance": "y", "common_action": body{"uri": "/x", "http_method": "POST"}},
		"/icos/app": {"app_instance": "z", "event": "created"},
	} {
		event["app_descriptor"], event["service"] = silentShop, "job-manager"
		p = decode[[]policy](t, w.operator.send(t, http.MethodPost, polman+at, event).is(t, http.StatusOK))[0]
		watches("3m")
	}
}
