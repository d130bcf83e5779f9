package contracts_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/policy/policies"
)

// on is the alert with the host that it was measured on, as the templates' expressions keep it.
func on(a body, host string) body {
	a["labels"].(body)["icos_host_name"] = "0a1b2c3d:" + host
	return a
}

// laterBy makes time pass for the brakes, and executes the actions that wait.
func (w *world) laterBy(t testing.TB, interval string) {
	t.Helper()
	_, err := w.DB.Exec(t.Context(), `update policy_actions set acted_at = acted_at - $1::text::interval,
held_until = held_until - $1::text::interval`, interval)
	require.NoError(t, err)
	require.NoError(t, w.Broker.TickOne(t.Context(), "policymanager-reconcile"))
	require.NoError(t, w.Broker.Drain(t.Context()))
}

// heardBefore moves all notices of the policy's alerts, and its actions, back in time.
func (w *world) heardBefore(t testing.TB, p policy, by time.Duration) {
	t.Helper()
	_, err := w.DB.Exec(t.Context(), `update policy_alerts set received_at = received_at - $1::interval`, by)
	require.NoError(t, err)
	_, err = w.DB.Exec(t.Context(), `update policy_actions set acted_at = acted_at - $1::interval`, by)
	require.NoError(t, err)
	kept, err := policies.Get(t.Context(), w.DB, uuid.MustParse(p.ID))
	require.NoError(t, err)
	earlier := func(at *time.Time) {
		if !at.IsZero() {
			*at = at.Add(-by)
		}
	}
	for i := range kept.State.Tracks {
		track := &kept.State.Tracks[i]
		earlier(&track.Ended)
		for j := range track.Episodes {
			earlier(&track.Episodes[j].Heard)
		}
	}
	_, err = w.DB.Exec(t.Context(), `update policies set state = $2 where id = $1`, p.ID, kept.State)
	require.NoError(t, err)
}

// TestEpisode_ofAPolicyThatIsActivatedAgain: the alert has been firing all the time, and Alertmanager still reports it
// with its original start.
func TestEpisode_ofAPolicyThatIsActivatedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _, p := w.loaded(t, "none")
	am, firing := w.alertmanager(), notice(alert(p, g.ID, "firing", time.Now().Add(-time.Hour)))
	for range 3 {
		am.send(t, http.MethodPost, webhook, firing).is(t, http.StatusOK)
	}
	require.Len(t, w.messages(t, g.ID, "policy.remediated"), 1)
	w.operator.call(t, http.MethodPost, polman+"/policies/"+p.ID+"/deactivate", "").is(t, http.StatusNoContent)
	am.send(t, http.MethodPost, webhook, firing).is(t, http.StatusOK)
	require.Equal(t, "inactive", w.seePolicy(t, p.ID).Status.Phase)
	for range 2 { // activating twice has no further effect
		w.operator.call(t, http.MethodPost, polman+"/policies/"+p.ID+"/activate", "").is(t, http.StatusNoContent)
	}
	require.Equal(t, "enforced", w.seePolicy(t, p.ID).Status.Phase)
	for range 3 {
		am.send(t, http.MethodPost, webhook, firing).is(t, http.StatusOK)
	}
	require.Equal(t, "violated", w.seePolicy(t, p.ID).Status.Phase)
	require.Len(t, w.messages(t, g.ID, "policy.remediated"), 2, "one remediation of each life")
	w.operator.call(t, http.MethodPost, polman+"/policies/"+p.ID+"/activate", "").is(t, http.StatusNoContent)
	am.send(t, http.MethodPost, webhook, firing).is(t, http.StatusOK)
	require.Len(t, w.messages(t, g.ID, "policy.remediated"), 2, "activating what is violated begins no new life")
}

// TestEpisode_ofAnotherThreshold: for a firing alert, a changed policy is a new one.
func TestEpisode_ofAnotherThreshold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _, p := w.loaded(t, "none")
	firing := notice(alert(p, g.ID, "firing", time.Now().Add(-time.Hour)))
	for i, threshold := range []string{"", "0.7", "0.6"} {
		if threshold != "" {
			at := polman + "/policies/" + p.ID + "/variables/threshold/" + threshold
			w.operator.call(t, http.MethodPost, at, "").is(t, http.StatusNoContent)
		}
		w.alertmanager().send(t, http.MethodPost, webhook, firing).is(t, http.StatusOK)
		require.Len(t, w.messages(t, g.ID, "policy.remediated"), i+1)
	}
}

// TestEpisode_ofAPolicyThatIsMadeAgain: it is deleted and created again while its alert fires.
func TestEpisode_ofAPolicyThatIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _ := w.running(t, freeShop)
	given := usage(g.ID)
	given["action"] = body{"url": "", "httpMethod": "POST", "extraParams": body{"remediation": "none"}}
	for life := range 3 {
		p := w.policy(t, given)
		firing := notice(alert(p, g.ID, "firing", time.Unix(1_790_000_000, 0)))
		w.alertmanager().send(t, http.MethodPost, webhook, firing).is(t, http.StatusOK)
		require.Equal(t, "violated", w.seePolicy(t, p.ID).Status.Phase)
		require.Len(t, w.messages(t, g.ID, "policy.remediated"), life+1)
		w.operator.call(t, http.MethodDelete, polman+"/policies/"+p.ID, "").is(t, http.StatusNoContent)
		w.alertmanager().send(t, http.MethodPost, webhook, firing).is(t, http.StatusOK)
	}
	require.Len(t, w.messages(t, g.ID, "policy.remediated"), 3)
}

// TestEpisode_thatFlaps: it ends and begins again and again within the cool-down. The application moves once, and
// history says what was held back and why it had no effect.
func TestEpisode_thatFlaps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j, p := w.loaded(t, "redeploy")
	am, start := w.alertmanager(), time.Now().Add(-time.Hour)
	tell := func(i int, status string) {
		at := start.Add(time.Duration(i) * time.Minute)
		am.send(t, http.MethodPost, webhook, notice(alert(p, g.ID, status, at))).is(t, http.StatusOK)
	}
	tell(0, "firing")
	moved := w.job(t, j.ID).Targets
	require.NotEqual(t, j.Targets, moved)
	w.finish(t, w.hub, hubAgent, w.claim(t, w.hub, hubAgent, w.job(t, j.ID)))
	tell(0, "resolved")
	for i := 1; i <= 4; i++ {
		tell(i, "firing")
		if i < 4 {
			tell(i, "resolved")
		}
	}
	require.Equal(t, moved, w.job(t, j.ID).Targets, "left alone within the cool-down")
	held := w.messages(t, g.ID, "policy.held")
	require.Len(t, held, 4)
	require.Contains(t, held[0], "reallocate is held back: the last remediation of web was less than 1m0s ago; tried again after")

	w.laterBy(t, "2 min")
	require.Len(t, w.messages(t, g.ID, "job.displaced"), 2, "for the one that still fires alone")
	skipped := w.messages(t, g.ID, "policy.skipped")
	require.Len(t, skipped, 3)
	require.Contains(t, skipped[0], "had ended when its turn came")
	w.laterBy(t, "2 min")
	require.Len(t, w.messages(t, g.ID, "job.displaced"), 2)
	w.legal(t)
}

// TestEpisode_thatOutlivesItsEnd: Alertmanager got no notice of the alert for a while and reported it as resolved.
func TestEpisode_thatOutlivesItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j := w.running(t, hubShop+"policies:\n  - security: high\n")
	p, start := w.policiesOf(t, g.ID)["0"], time.Now().Add(-time.Hour)
	tell := func(status string, started time.Time, news bool) {
		t.Helper()
		a := alert(p, g.ID, status, started)
		if status == "resolved" {
			a["endsAt"] = time.Now()
		}
		want := body{"new": 0.0, "repeated": 1.0, "ignored": 0.0}
		if news {
			want = body{"new": 1.0, "repeated": 0.0, "ignored": 0.0}
		}
		require.Equal(t, want, decode[body](t, w.alertmanager().send(t, http.MethodPost, webhook, notice(a)).is(t, http.StatusOK)))
	}
	is := func(phase, state string) {
		t.Helper()
		require.Equal(t, phase, w.seePolicy(t, p.ID).Status.Phase)
		require.Equal(t, state, w.job(t, j.ID).State)
	}
	for gap := range 3 {
		tell("firing", start, true)
		tell("firing", start, false)
		is("violated", "Degraded")
		require.Len(t, w.messages(t, g.ID, "policy.violated"), gap+1)
		require.Len(t, w.messages(t, g.ID, "policy.stayed"), gap+1)
		w.heardBefore(t, p, 10*time.Minute)
		tell("resolved", start, true)
		tell("resolved", start, false)
		tell("firing", start, false) // overtaken by a newer notice
		is("enforced", "Finished")
		w.heardBefore(t, p, 5*time.Minute)
	}
	require.Contains(t, fmt.Sprint(w.messages(t, g.ID, "policy.violated")), "is violated still")

	later := start.Add(15 * time.Second) // as reported by another Prometheus
	tell("firing", later, true)
	is("violated", "Degraded")
	w.heardBefore(t, p, 5*time.Minute)
	tell("resolved", start, true)
	is("enforced", "Finished")
	w.heardBefore(t, p, 5*time.Minute)
	tell("firing", later, true)
	is("violated", "Degraded")
	tell("firing", start, true) // reported once more in a repeat
	w.heardBefore(t, p, 5*time.Minute)
	tell("resolved", start, true)
	is("enforced", "Finished")
	w.legal(t)
}

// TestEpisode_thatOutlivesItsEnd_isActedUponOnce: again only if the first action had no effect.
func TestEpisode_thatOutlivesItsEnd_isActedUponOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := time.Now().Add(-time.Hour)
	tell := func(g group, p policy, status string) {
		t.Helper()
		w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, status, start))).is(t, http.StatusOK)
	}
	g, j, p := w.loaded(t, "scale-up")
	tell(g, p, "firing")
	w.finish(t, w.hub, hubAgent, w.job(t, j.ID))
	tell(g, p, "resolved")
	w.heardBefore(t, p, 5*time.Minute)
	w.laterBy(t, "2 hours")
	tell(g, p, "firing")
	require.Equal(t, "violated", w.seePolicy(t, p.ID).Status.Phase)
	require.Equal(t, "Finished", w.job(t, j.ID).State)
	require.Len(t, w.messages(t, g.ID, "policy.remediated"), 1)

	g, j, p = w.loaded(t, "redeploy")
	w.movedOften(t, g, p, 10)
	tell(g, p, "firing")
	tell(g, p, "resolved")
	w.laterBy(t, "2 hours")
	require.Contains(t, w.messages(t, g.ID, "policy.skipped")[0], "had ended when its turn came")
	require.Equal(t, j.Targets, w.job(t, j.ID).Targets)
	w.heardBefore(t, p, 5*time.Minute)
	tell(g, p, "firing")
	require.NotEqual(t, j.Targets, w.job(t, j.ID).Targets, "nothing had come of it")
	w.legal(t)
}

// TestEpisode_ofANodeThatWasLeft: another alert about the former node arrives after the application moved away from it.
func TestEpisode_ofANodeThatWasLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j, p := w.loaded(t, "redeploy")
	am, start := w.alertmanager(), time.Now().Add(-time.Hour)
	former := j.Targets.Node
	am.send(t, http.MethodPost, webhook, notice(on(alert(p, g.ID, "firing", start), former))).is(t, http.StatusOK)
	moved := w.job(t, j.ID).Targets
	require.NotEqual(t, former, moved.Node)
	w.finish(t, w.hub, hubAgent, w.claim(t, w.hub, hubAgent, w.job(t, j.ID)))
	_, err := w.DB.Exec(t.Context(), `update policy_actions set acted_at = acted_at - interval '1 hour'`)
	require.NoError(t, err)

	late := on(alert(p, g.ID, "firing", start.Add(time.Minute)), former)
	am.send(t, http.MethodPost, webhook, notice(late)).is(t, http.StatusOK)
	require.Equal(t, moved, w.job(t, j.ID).Targets, "it is not there any more")
	require.Len(t, w.messages(t, g.ID, "job.displaced"), 1)
	skipped := w.messages(t, g.ID, "policy.skipped")
	require.Len(t, skipped, 1)
	require.Contains(t, skipped[0], "the violation is about "+former+", where the component is not")
	w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", body{
		"policyName": "p", "remediation": "redeploy", "extraLabels": body{"k8s_node_name": former},
		"subject": body{"appInstance": g.ID, "appComponent": "web"},
	}).refused(t, http.StatusConflict)

	here := on(alert(p, g.ID, "firing", start.Add(2*time.Minute)), moved.Node)
	am.send(t, http.MethodPost, webhook, notice(here)).is(t, http.StatusOK)
	require.Len(t, w.messages(t, g.ID, "job.displaced"), 2, "what is about the node where it is counts")
	require.Equal(t, former, w.job(t, j.ID).Targets.Node, "the node before is better than this one: there is no third")
	w.legal(t)
}

// TestEpisode_ofAPolicyThatIsDeletedWhileItIsHeldBack: the action is skipped when its time comes.
func TestEpisode_ofAPolicyThatIsDeletedWhileItIsHeldBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j, p := w.loaded(t, "scale-up")
	am, start := w.alertmanager(), time.Now().Add(-time.Hour)
	am.send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", start))).is(t, http.StatusOK)
	w.finish(t, w.hub, hubAgent, w.job(t, j.ID))
	am.send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", start.Add(time.Minute)))).is(t, http.StatusOK)
	require.Len(t, w.messages(t, g.ID, "policy.held"), 1)
	w.operator.call(t, http.MethodDelete, polman+"/policies/"+p.ID, "").is(t, http.StatusNoContent)
	w.laterBy(t, "2 min")
	require.Equal(t, "Finished", w.job(t, j.ID).State)
	require.Contains(t, w.messages(t, g.ID, "policy.skipped")[0], "the policy was deleted")
	var open int
	require.NoError(t, w.DB.QueryRow(t.Context(), `select count(*) from policy_actions where status = 'held'`).Scan(&open))
	require.Zero(t, open)
}

// TestEpisode_movesNothingElse: the other components stay where they are.
func TestEpisode_movesNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.submit(t, freeShop+`  - name: store
    type: kubernetes
    requirements: {cpu: 500m, memory: 256Mi, architecture: x86_64}
    manifests: [{name: store, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: store}, data: {a: b}}}]
policies:
  - {name: load, type: custom, fromTemplate: app-host-cpu-usage-perc, remediation: redeploy, variables: {threshold: 0.8}}
`)
	before := map[string]job{}
	for _, j := range w.group(t, g.ID).Jobs {
		w.finish(t, w.hub, hubAgent, w.claim(t, w.hub, hubAgent, j))
		before[j.ID] = w.job(t, j.ID)
	}
	require.Len(t, before, 2)
	p := w.policiesOf(t, g.ID)["load"]
	w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", time.Now()))).is(t, http.StatusOK)
	moved := 0
	for id, j := range before {
		now := w.job(t, id)
		if now.Targets != j.Targets {
			moved++
			continue
		}
		require.Equal(t, j.stands(), now.stands())
	}
	require.Equal(t, 1, moved)
	require.Len(t, w.messages(t, g.ID, "job.displaced"), 1)
}
