package contracts_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/test/inprocess"
)

const webhook = "/polman/watcher/api/v1/webhooks/alertmanager"

// alert is one alert of Alertmanager about a policy's component.
func alert(p policy, instance, status string, start time.Time) body {
	return body{
		"status": status, "startsAt": start.UTC().Format(time.RFC3339Nano), "endsAt": "0001-01-01T00:00:00Z",
		"generatorURL": "http://prometheus/graph", "fingerprint": "c04fd2082a9b94e9",
		"labels": body{
			"alertname": p.Name + ":rule-0", "icos_app_name": "shop", "icos_app_instance": instance,
			"icos_app_component": "web", "icos_host_id": "h1",
		},
		"annotations": body{"plm_id": p.ID, "plm_expr_value": "0.92", "plm_measurement_backend": "prom-1"},
	}
}

// notice is a webhook body of version 4.
func notice(alerts ...body) body {
	if alerts == nil {
		alerts = []body{}
	}
	return body{
		"version": "4", "groupKey": "{}:{}", "truncatedAlerts": 0, "status": "firing", "receiver": "dpm-webhook",
		"groupLabels": body{}, "commonLabels": body{}, "commonAnnotations": body{}, "externalURL": "http://am:9093", "alerts": alerts,
	}
}

func (w *world) alertmanager() client { return w.as(auth.Alertmanager) }

// loadedShop is freeShop with one policy, named load, with the given remediation.
func loadedShop(remediation string) string {
	return freeShop + `policies:
  - {name: load, type: custom, fromTemplate: app-host-cpu-usage-perc, remediation: ` + remediation + `, variables: {threshold: 0.8}}
`
}

// loaded is loadedShop after it has started to run.
func (w *world) loaded(t testing.TB, remediation string) (group, job, policy) {
	t.Helper()
	g, j := w.running(t, loadedShop(remediation))
	return g, j, w.policiesOf(t, g.ID)["load"]
}

// patched is loaded with a policy that scales up, while a patch of the same job is not carried out yet.
func (w *world) patched(t testing.TB) (group, job, policy) {
	t.Helper()
	g, j, p := w.loaded(t, "scale-up")
	w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", body{
		"policyName": "p", "remediation": "patch", "subject": body{"appInstance": g.ID},
	}).is(t, http.StatusOK)
	return g, j, p
}

// messages lists the messages of the application's history entries with that event.
func (w *world) messages(t testing.TB, app, event string) []string {
	t.Helper()
	var messages []string
	for _, e := range decode[[]body](t, w.viewer.get(t, "/jobmanager/history?app="+app)) {
		if e["event"] == event {
			messages = append(messages, e["message"].(string))
		}
	}
	return messages
}

func TestViolation_movesWhatItIsAbout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j, p := w.loaded(t, "redeploy")
	start := time.Now().Add(-time.Minute)
	w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", start))).is(t, http.StatusOK)
	require.Equal(t, "violated", w.seePolicy(t, p.ID).Status.Phase)
	moved := w.job(t, j.ID)
	require.Equal(t, standing{create, "", "Created", ""}, moved.stands())
	require.Equal(t, "hub", moved.Targets.Cluster)
	require.NotEqual(t, j.Targets, moved.Targets)
	w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "resolved", start))).is(t, http.StatusOK)
	require.Equal(t, "enforced", w.seePolicy(t, p.ID).Status.Phase)
	require.Subset(t, w.seePolicy(t, p.ID).happened(), []string{"violated", "resolved"})
	require.Len(t, w.messages(t, g.ID, "policy.resolved"), 1)
	w.legal(t)
}

// TestViolation_isActedUponOncePerEpisode: two peers send the same alert a hundred times, in any order, with ends in
// between.
func TestViolation_isActedUponOncePerEpisode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _, p := w.loaded(t, "none")
	const episodes = 4
	start := time.Now().Add(-time.Hour)
	var sent []body
	for range 2 { // peers
		for i := range 100 {
			at := start.Add(time.Duration(i%episodes) * time.Minute)
			sent = append(sent, alert(p, g.ID, "firing", at), alert(p, g.ID, "resolved", at))
		}
	}
	rand.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
	var wg sync.WaitGroup
	for peer := range slices.Chunk(sent, len(sent)/2) {
		am := w.alertmanager()
		wg.Go(func() {
			for batch := range slices.Chunk(peer, 5) {
				am.send(t, http.MethodPost, webhook, notice(batch...)).is(t, http.StatusOK)
			}
		})
	}
	wg.Wait()
	require.NoError(t, w.Broker.Drain(t.Context()))
	require.Len(t, w.messages(t, g.ID, "policy.violated"), episodes)
	require.Len(t, w.messages(t, g.ID, "policy.remediated"), episodes, "each is carried out once")
	require.Equal(t, "enforced", w.seePolicy(t, p.ID).Status.Phase, "all are over")
	var done int
	require.NoError(t, w.DB.QueryRow(t.Context(), `select count(*) from policy_actions where status = 'done'`).Scan(&done))
	require.Equal(t, episodes, done)
}

// TestViolation_isHeldBack: by the cool-down, and by the limit on moves.
func TestViolation_isHeldBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j, p := w.loaded(t, "scale-up")
	am, start := w.alertmanager(), time.Now().Add(-time.Hour)
	fire := func(i int) {
		am.send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", start.Add(time.Duration(i)*time.Minute)))).is(t, 200)
	}
	fire(0)
	require.Equal(t, standing{update, "scale-up", "Created", hubAgent}, w.job(t, j.ID).stands())
	w.finish(t, w.hub, hubAgent, w.job(t, j.ID))
	fire(1)
	held := w.messages(t, g.ID, "policy.held")
	require.Len(t, held, 1)
	require.Contains(t, held[0], "less than 1m0s ago")
	require.Equal(t, "Finished", w.job(t, j.ID).State)

	_, err := w.DB.Exec(t.Context(), `update policy_actions set acted_at = acted_at - interval '5 min', held_until = now()`)
	require.NoError(t, err)
	require.NoError(t, w.Broker.TickOne(t.Context(), "policymanager-reconcile"))
	require.NoError(t, w.Broker.Drain(t.Context()))
	require.Equal(t, standing{update, "scale-up", "Created", hubAgent}, w.job(t, j.ID).stands(), "later it is done")
	w.legal(t)
}

// movedOften records that many moves of the application within the last hour, but no recent one.
func (w *world) movedOften(t testing.TB, g group, p policy, times int) {
	t.Helper()
	_, err := w.DB.Exec(t.Context(), `insert into policy_actions (id, policy_id, instance, component, remediation, status, violation,
started_at, received_at, acted_at) select gen_random_uuid(), $1, $2, 'web', 'reallocate', 'done', '{}', now(), now(),
now() - make_interval(mins => 20 + n) from generate_series(1, $3) n`, p.ID, g.ID, times)
	require.NoError(t, err)
}

func TestViolation_movesAtMostSoOften(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j, p := w.loaded(t, "redeploy")
	w.movedOften(t, g, p, 10)
	w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", time.Now()))).is(t, http.StatusOK)
	held := w.messages(t, g.ID, "policy.held")
	require.Len(t, held, 1)
	require.Contains(t, held[0], "10 times within an hour")
	require.Equal(t, j.Targets, w.job(t, j.ID).Targets)
}

// TestViolation_movesAtMostSoOften_andCountsMovesAlone: no other remediations, and what was only recorded brakes nothing.
func TestViolation_movesAtMostSoOften_andCountsMovesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j, p := w.loaded(t, "redeploy")
	w.movedOften(t, g, p, 10)
	_, err := w.DB.Exec(t.Context(), `update policy_actions set remediation = 'scale-up'`)
	require.NoError(t, err)
	_, err = w.DB.Exec(t.Context(), `insert into policy_actions (id, policy_id, instance, component, remediation, status, violation,
started_at, received_at, acted_at) select gen_random_uuid(), $1, $2, 'web', 'none', 'done', '{}', now(), now(), now()`, p.ID, g.ID)
	require.NoError(t, err)
	w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", time.Now()))).is(t, http.StatusOK)
	require.Empty(t, w.messages(t, g.ID, "policy.held"))
	require.NotEqual(t, j.Targets, w.job(t, j.ID).Targets)
}

// TestViolation_movesAtMostSoOften_byAnyName: a policy created with the API keeps its own spelling of the remediation.
func TestViolation_movesAtMostSoOften_byAnyName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j := w.running(t, freeShop)
	given := usage(g.ID)
	given["action"] = body{"extraParams": body{"remediation": "Migrate"}}
	p := w.policy(t, given)
	w.movedOften(t, g, p, 9)
	am, start := w.alertmanager(), time.Now().Add(-time.Hour)
	am.send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", start))).is(t, http.StatusOK)
	require.Len(t, w.messages(t, g.ID, "policy.remediated"), 1, "the tenth is carried out")
	w.finish(t, w.hub, hubAgent, w.job(t, j.ID))
	w.laterBy(t, "2 min")
	am.send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", start.Add(time.Minute)))).is(t, http.StatusOK)
	held := w.messages(t, g.ID, "policy.held")
	require.Len(t, held, 1)
	require.Contains(t, held[0], "10 times within an hour")
	require.Len(t, w.messages(t, g.ID, "policy.remediated"), 1)
}

// TestViolation_withNowhereElseToGo: a component that fits no other node stays and is degraded with the reason; it
// moves when there is room.
func TestViolation_withNowhereElseToGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pinned := strings.Replace(freeShop, "architecture: x86_64", "architecture: x86_64, nodelabel: {key: disk, values: [ssd]}", 1)
	topology := func(labelled ...string) { w.saveLabelled(t, "disk", "ssd", labelled...) }
	topology("hub-1")
	g, j := w.running(t, pinned+"policies:\n  - security: high\n")
	p := w.policiesOf(t, g.ID)["0"]
	start := time.Now()
	w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", start))).is(t, http.StatusOK)
	stuck := w.job(t, j.ID)
	require.Equal(t, j.Targets, stuck.Targets)
	require.Equal(t, "Degraded", stuck.State)
	require.Equal(t, "Degraded", w.group(t, g.ID).Status)
	require.Contains(t, w.messages(t, g.ID, "application.unplaced")[0], "web stays on hub/hub-1")

	t.Run("and goes when there is room", func(t *testing.T) {
		topology("hub-1", "hub-2")
		require.Equal(t, "hub-2", w.job(t, j.ID).Targets.Node)
		require.Equal(t, "Created", w.job(t, j.ID).State)
		w.legal(t)
	})
}

// TestViolation_movesAtMostSoOften_butCountsNoStay: a component that had nowhere else to go was not moved, so it does
// not count for the limit. It is left alone for the cool-down, however often its alert fires again.
func TestViolation_movesAtMostSoOften_butCountsNoStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.submit(t, freeShop+hubStore+`policies:
  - {name: load, type: custom, fromTemplate: app-host-cpu-usage-perc, remediation: redeploy, variables: {threshold: 0.8}}
`)
	before := map[string]job{}
	for _, j := range w.group(t, g.ID).Jobs {
		w.finish(t, w.hub, hubAgent, w.claim(t, w.hub, hubAgent, j))
		before[j.Resource.Name] = j
	}
	p, start := w.policiesOf(t, g.ID)["load"], time.Now().Add(-time.Hour)
	w.movedOften(t, g, p, 9)
	fire := func(component string, episode int) {
		a := alert(p, g.ID, "firing", start.Add(time.Duration(episode)*time.Minute))
		a["fingerprint"] = component
		a["labels"].(body)["icos_app_component"] = component // alert makes it
		w.alertmanager().send(t, http.MethodPost, webhook, notice(a)).is(t, http.StatusOK)
	}
	for episode := range 3 {
		fire("store", episode)
	}
	stayed := w.messages(t, g.ID, "policy.stayed")
	require.Len(t, stayed, 1)
	require.Contains(t, stayed[0], "nothing was moved")
	held := w.messages(t, g.ID, "policy.held")
	require.Len(t, held, 2)
	require.Contains(t, held[0], "the last remediation of store was less than 1m0s ago")
	w.laterBy(t, "2 min")
	require.Len(t, w.messages(t, g.ID, "policy.stayed"), 2, "for the one that still fires alone")
	require.Equal(t, before["store"].Targets, w.job(t, before["store"].ID).Targets)

	fire("web", 0)
	require.NotEqual(t, before["web"].Targets, w.job(t, before["web"].ID).Targets, "the tenth move")
	w.legal(t)
}

func TestViolation_thatEndsWhereItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j := w.running(t, hubShop+"policies:\n  - security: high\n")
	p, start := w.policiesOf(t, g.ID)["0"], time.Now()
	w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", start))).is(t, http.StatusOK)
	require.Equal(t, "Degraded", w.group(t, g.ID).Status)
	w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "resolved", start))).is(t, http.StatusOK)
	require.Equal(t, "Finished", w.job(t, j.ID).State)
	require.Equal(t, "Available", w.group(t, g.ID).Status)
}

// TestViolation_thatEndedBeforeItsTurn: the component may stay then, so no action moves it. The violation of another
// component that began at the same instant remains.
func TestViolation_thatEndedBeforeItsTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.submit(t, hubShop+hubStore+`policies:
  - {name: load, type: custom, fromTemplate: app-host-cpu-usage-perc, remediation: redeploy, variables: {threshold: 0.8}}
`)
	for _, j := range w.group(t, g.ID).Jobs {
		w.finish(t, w.hub, hubAgent, w.claim(t, w.hub, hubAgent, j))
	}
	p, start := w.policiesOf(t, g.ID)["load"], time.Now()
	for _, told := range [][2]string{{"store", "firing"}, {"web", "resolved"}, {"web", "firing"}} {
		a := alert(p, g.ID, told[1], start)
		a["fingerprint"] = told[0]
		a["labels"].(body)["icos_app_component"] = told[0] // alert makes it
		w.alertmanager().send(t, http.MethodPost, webhook, notice(a)).is(t, http.StatusOK)
	}
	require.Len(t, w.messages(t, g.ID, "policy.violated"), 2)
	skipped := w.messages(t, g.ID, "policy.skipped")
	require.Len(t, skipped, 1)
	require.Contains(t, skipped[0], "had ended when its turn came")
	for _, j := range w.group(t, g.ID).Jobs {
		require.Equal(t, map[string]string{"web": "Finished", "store": "Degraded"}[j.Resource.Name], j.State)
	}
	w.legal(t)
}

// TestViolation_thatEndedBeforeItsTurn_isNotRemedied: a late action would change a component that is fine again. If the
// violation continues after all, it is acted upon.
func TestViolation_thatEndedBeforeItsTurn_isNotRemedied(t *testing.T) {
	t.Parallel()
	for _, remediation := range []string{"scale-up", "scale-out", "patch", "replace", "redeploy"} {
		t.Run(remediation, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g, j, p := w.loaded(t, remediation)
			start := time.Now().Add(-time.Hour)
			for _, status := range []string{"resolved", "firing"} {
				w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, status, start))).is(t, http.StatusOK)
			}
			require.Len(t, w.messages(t, g.ID, "policy.violated"), 1)
			skipped := w.messages(t, g.ID, "policy.skipped")
			require.Len(t, skipped, 1)
			require.Contains(t, skipped[0], "had ended when its turn came")
			require.Empty(t, w.messages(t, g.ID, "policy.remediated"))
			require.Equal(t, "Finished", w.job(t, j.ID).State)

			w.heardBefore(t, p, 5*time.Minute)
			w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", start))).is(t, http.StatusOK)
			require.Len(t, w.messages(t, g.ID, "policy.remediated"), 1)
			require.Equal(t, "Created", w.job(t, j.ID).State)
			w.legal(t)
		})
	}
}

// TestViolation_thatEndsBeforeItIsDelivered: the job was busy at the first delivery, and the violation ends before the
// next.
func TestViolation_thatEndsBeforeItIsDelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j, p := w.patched(t)
	start := time.Now().Add(-time.Minute)
	for _, status := range []string{"firing", "resolved"} {
		w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, status, start))).is(t, http.StatusOK)
	}
	require.Len(t, w.Broker.Failures(), 1)
	w.finish(t, w.hub, hubAgent, w.job(t, j.ID))
	w.again(t, "remediation.requested")
	require.Equal(t, "Finished", w.job(t, j.ID).State)
	require.Contains(t, w.messages(t, g.ID, "policy.skipped")[0], "had ended when its turn came")
}

// TestViolation_thatEndsWhileItsActionWaits: the action waits for other transactions; it checks the violation again
// under a lock that prevents it from ending unnoticed.
func TestViolation_thatEndsWhileItsActionWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j := w.running(t, hubShop+"policies:\n  - security: high\n")
	p, start := w.policiesOf(t, g.ID)["0"], time.Now().UTC().Truncate(time.Microsecond)
	firing := alert(p, g.ID, "firing", start)
	var sent sync.WaitGroup
	require.NoError(t, w.DB.Tx(storetest.OutOfOrder(t.Context()), func(ctx context.Context, tx *store.Tx) error {
		if err := match.Lock(ctx, tx); err != nil {
			return err
		}
		sent.Go(func() { w.alertmanager().send(t, http.MethodPost, webhook, notice(firing)).is(t, http.StatusOK) })
		storetest.AwaitBlocked(t, w.DB)
		violated, err := policies.Get(ctx, tx, uuid.MustParse(p.ID))
		if err != nil {
			return err
		}
		return policies.Judge(ctx, tx, events.Alert{
			Policy: violated.UUID(), Fingerprint: firing["fingerprint"].(string), StartsAt: start, // alert makes it
			ReceivedAt: time.Now(), Since: violated.State.Since, Labels: map[string]string{"icos_app_component": "web"},
		})
	}))
	sent.Wait()
	require.NoError(t, w.Broker.Drain(t.Context()))
	require.Equal(t, "enforced", w.seePolicy(t, p.ID).Status.Phase)
	require.Equal(t, "Finished", w.job(t, j.ID).State)
	require.Contains(t, w.messages(t, g.ID, "policy.skipped")[0], "had ended when its turn came")
}

// TestAPolicyThatGoes_blamesNobody: a component that could not leave its node may stay there when the policy is
// removed, in whatever way.
func TestAPolicyThatGoes_blamesNobody(t *testing.T) {
	t.Parallel()
	for how, goes := range map[string]func(*testing.T, *world, string, string){
		"deleted": func(t *testing.T, w *world, _, p string) {
			t.Helper()
			w.operator.call(t, http.MethodDelete, polman+"/policies/"+p, "").is(t, http.StatusNoContent)
		},
		"deactivated": func(t *testing.T, w *world, _, p string) {
			t.Helper()
			w.operator.call(t, http.MethodPost, polman+"/policies/"+p+"/deactivate", "").is(t, http.StatusNoContent)
		},
		"taken out of the descriptor": func(t *testing.T, w *world, g, _ string) {
			t.Helper()
			w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g, hubShop).is(t, http.StatusOK)
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g, j := w.running(t, hubShop+"policies:\n  - security: high\n")
			p := w.policiesOf(t, g.ID)["0"]
			w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", time.Now()))).is(t, http.StatusOK)
			require.Equal(t, "Degraded", w.job(t, j.ID).State)
			goes(t, w, g.ID, p.ID)
			require.Equal(t, "Finished", w.job(t, j.ID).State)
		})
	}
}

// TestAPolicyThatIsKept_excusesWhatNoOtherBlames: a component is excused even if another component violates the policy,
// or if a violated policy moves nothing.
func TestAPolicyThatIsKept_excusesWhatNoOtherBlames(t *testing.T) {
	t.Parallel()
	const usage = "type: custom, fromTemplate: app-host-cpu-usage-perc, variables: {threshold: 0.8}"
	for name, row := range map[string]struct {
		policies      string
		told          [][3]string // policy, component, status
		before, after map[string]string
	}{
		"another policy, of another component": {
			policies: `  - {name: web, component: web, remediation: redeploy, ` + usage + `}
  - {name: store, component: store, remediation: redeploy, ` + usage + "}\n",
			told:   [][3]string{{"web", "web", "firing"}, {"store", "store", "firing"}, {"web", "web", "resolved"}},
			before: map[string]string{"web": "Degraded", "store": "Degraded"},
			after:  map[string]string{"web": "Finished", "store": "Degraded"},
		},
		"the same policy, by another component": {
			policies: `  - {name: all, remediation: redeploy, ` + usage + "}\n",
			told:     [][3]string{{"all", "web", "firing"}, {"all", "store", "firing"}, {"all", "web", "resolved"}},
			before:   map[string]string{"web": "Degraded", "store": "Degraded"},
			after:    map[string]string{"web": "Finished", "store": "Degraded"},
		},
		"another policy of the same component, which only records": {
			policies: `  - {name: moves, remediation: migrate, ` + usage + `}
  - {name: records, remediation: none, ` + usage + "}\n",
			told:   [][3]string{{"moves", "web", "firing"}, {"records", "web", "firing"}, {"moves", "web", "resolved"}},
			before: map[string]string{"web": "Degraded", "store": "Finished"},
			after:  map[string]string{"web": "Finished", "store": "Finished"},
		},
		"another policy of the same component, which moves it too": {
			policies: `  - {name: moves, remediation: migrate, ` + usage + `}
  - {name: too, remediation: redeploy, ` + usage + "}\n",
			told:   [][3]string{{"moves", "web", "firing"}, {"too", "web", "firing"}, {"moves", "web", "resolved"}},
			before: map[string]string{"web": "Degraded", "store": "Finished"},
			after:  map[string]string{"web": "Degraded", "store": "Finished"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := w.submit(t, hubShop+hubStore+`policies:
`+row.policies)
			for _, j := range w.group(t, g.ID).Jobs {
				w.finish(t, w.hub, hubAgent, w.claim(t, w.hub, hubAgent, j))
			}
			all, start := w.policiesOf(t, g.ID), time.Now()
			states := func() map[string]string {
				of := map[string]string{}
				for _, j := range w.group(t, g.ID).Jobs {
					of[j.Resource.Name] = j.State
				}
				return of
			}
			last := len(row.told) - 1
			for i, told := range row.told {
				if i == last {
					require.Equal(t, row.before, states())
				}
				a := alert(all[told[0]], g.ID, told[2], start)
				a["fingerprint"] = told[0] + " " + told[1]
				a["labels"].(body)["icos_app_component"] = told[1] // alert makes it
				w.alertmanager().send(t, http.MethodPost, webhook, notice(a)).is(t, http.StatusOK)
			}
			require.Equal(t, row.after, states())
			w.legal(t)
		})
	}
}

// TestAPolicyOfSeveralApplications_excusesEachOfThem: each when its own violation ends. The policy is also considered
// when another policy excuses a component.
func TestAPolicyOfSeveralApplications_excusesEachOfThem(t *testing.T) {
	t.Parallel()
	for _, meant := range []string{"*", "/[0-9a-f-]+/"} {
		t.Run(meant, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one, first := w.running(t, hubShop+"policies:\n  - security: high\n")
			other, second := w.running(t, hubShop)
			own := w.policiesOf(t, one.ID)["0"]
			given := usage(meant)
			given["subject"] = body{"type": "app", "appName": "*", "appInstance": meant, "appComponent": "*"}
			given["spec"], given["variables"] = body{"type": "template", "templateName": "app-host-cpu-usage-perc"}, body{"threshold": 0.8}
			all, start := w.policy(t, given), time.Now()
			tell := func(p policy, g group, status string) {
				t.Helper()
				a := alert(p, g.ID, status, start)
				a["fingerprint"] = p.ID + g.ID
				w.alertmanager().send(t, http.MethodPost, webhook, notice(a)).is(t, http.StatusOK)
			}
			are := func(states ...string) {
				t.Helper()
				require.Equal(t, states, []string{w.job(t, first.ID).State, w.job(t, second.ID).State})
			}
			tell(all, one, "firing")
			tell(all, other, "firing")
			tell(own, one, "firing")
			are("Degraded", "Degraded")
			require.Len(t, w.messages(t, other.ID, "policy.violated"), 1)
			tell(own, one, "resolved")
			are("Degraded", "Degraded")
			tell(all, one, "resolved")
			are("Finished", "Degraded")
			require.Len(t, w.messages(t, one.ID, "policy.resolved"), 2)
			require.Equal(t, "violated", w.seePolicy(t, all.ID).Status.Phase)
			require.Empty(t, w.messages(t, other.ID, "policy.resolved"))
			tell(all, other, "resolved")
			are("Finished", "Finished")
			require.Len(t, w.messages(t, other.ID, "policy.resolved"), 1)
			require.Equal(t, "enforced", w.seePolicy(t, all.ID).Status.Phase)

			w.laterBy(t, "2 min")
			start = start.Add(time.Minute)
			tell(all, one, "firing")
			tell(all, other, "firing")
			are("Degraded", "Degraded")
			w.operator.call(t, http.MethodDelete, polman+"/policies/"+all.ID, "").is(t, http.StatusNoContent)
			are("Finished", "Finished")
			w.legal(t)
		})
	}
}

func TestScaling_staysWithinTheDescriptor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	document := strings.Replace(freeShop, "    requirements:", "    scaling: {maxReplicas: 4, step: 2}\n    requirements:", 1)
	g, j := w.running(t, document)
	scale := func() *answer {
		return w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", body{
			"policyName": "p", "remediation": "scale-up", "subject": body{"appInstance": g.ID, "appComponent": "web"},
		})
	}
	for i, step := range []int{2, 0} { // from 1 to 3 to 4; a missing step is one
		scale().is(t, http.StatusOK)
		require.Equal(t, step, w.job(t, j.ID).Resource.Remediations[i].Step)
		w.finish(t, w.hub, hubAgent, w.job(t, j.ID))
	}
	require.Contains(t, scale().refused(t, http.StatusConflict).Detail, "1 to 4")

	w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, strings.Replace(document, "color: red", "color: blue", 1)).
		is(t, http.StatusOK)
	w.finish(t, w.hub, hubAgent, w.job(t, j.ID))
	scale().is(t, http.StatusOK)
	require.Equal(t, 2, w.job(t, j.ID).Resource.Remediations[0].Step, "what was deployed anew has one copy again")
}

// TestScaling_countsWhatWasCarriedOut: whether it runs well or not. A refused scaling is tried again, and counts with
// the next.
func TestScaling_countsWhatWasCarriedOut(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		conditions []body
		degraded   string // status of the remediation according to the report
		finished   string // when the job runs
		copies     int    // in the database
	}{
		"pods beyond the quota": {
			[]body{{"type": "Applied", "status": "True"}, {"type": "Available", "status": "False", "reason": "FailedCreate"}},
			"Remediated", "Remediated", 2,
		},
		"a field that another held for a while": {
			[]body{{"type": "Applied", "status": "False", "reason": "ApplyConflict"}}, "Pending", "Remediated", 2,
		},
		"nothing is known of it": {[]body{{"type": "Degraded", "status": "True"}}, "Pending", "Remediated", 2},
		"nobody there can":       {[]body{{"type": "Applied", "status": "False", "reason": "NotSupported"}}, "Failed", "Failed", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g, j := w.running(t, strings.Replace(freeShop, "    requirements:", "    scaling: {maxReplicas: 2}\n    requirements:", 1))
			scale := func(which string) *answer {
				return w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", body{
					"policyName": "p", "remediation": which, "subject": body{"appInstance": g.ID, "appComponent": "web"},
				})
			}
			scale("scale-up").is(t, http.StatusOK)
			taken := w.claim(t, w.hub, hubAgent, w.job(t, j.ID))
			told := report(hubAgent, taken, "Degraded", "Degraded")
			told["resource"].(body)["conditions"] = row.conditions // report makes it
			w.hub.send(t, http.MethodPut, "/jobmanager/jobs", told).is(t, http.StatusOK)
			require.Equal(t, row.degraded, w.job(t, j.ID).Resource.Remediations[0].Status)
			w.hub.send(t, http.MethodPut, "/jobmanager/resources/status", body{
				"job_id": j.ID, "owner_id": hubAgent, "epoch": taken.Epoch, "status": "Available",
			}).is(t, http.StatusOK)
			require.Equal(t, "Finished", w.job(t, j.ID).State)
			require.Equal(t, row.finished, w.job(t, j.ID).Resource.Remediations[0].Status)

			within, beyond := "scale-down", "scale-up" // replicas: two
			if row.copies == 1 {
				within, beyond = beyond, within
			}
			require.Contains(t, scale(beyond).refused(t, http.StatusConflict).Detail, fmt.Sprintf("has %d replicas already", row.copies))
			scale(within).is(t, http.StatusOK)
		})
	}
}

// TestRemediationIsAsItsAgentSays: newer agents say of each remediation how it went, in the resource that they report.
func TestRemediationIsAsItsAgentSays(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ remediation, state, said, want string }{
		"it failed, and the component runs":   {"secure", "Finished", "Failed", "Failed"},
		"scaling failed, and so on":           {"scale-up", "Finished", "Failed", "Failed"},
		"it was done, in their word for it":   {"scale-up", "Degraded", "Applied", "Remediated"},
		"it was done, in the word of the API": {"scale-up", "Degraded", "Remediated", "Remediated"},
		"it is as it was listed":              {"secure", "Finished", "Pending", "Remediated"},
		"it is in no word of the contract":    {"scale-up", "Degraded", "done", "Pending"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g, j := w.running(t, freeShop)
			w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", body{
				"policyName": "p", "remediation": row.remediation, "subject": body{"appInstance": g.ID, "appComponent": "web"},
			}).is(t, http.StatusOK)
			listed := decode[[]body](t, w.hub.get(t, "/jobmanager/jobs/executable/ocm/"+hubAgent))[0]
			remediations := listed["resource"].(body)["remediations"] // as all jobs have it
			remediations.([]any)[0].(body)["remediationStatus"] = row.said
			told := report(hubAgent, w.claim(t, w.hub, hubAgent, j), row.state, row.state)
			told["resource"].(body)["remediations"] = remediations // report makes it
			w.hub.send(t, http.MethodPut, "/jobmanager/jobs", told).is(t, http.StatusOK)
			require.Equal(t, row.want, w.job(t, j.ID).Resource.Remediations[0].Status)
		})
	}
}

// TestScaling_keepsTheLastReplica: a minimum of none is one of one, in the books as in the clusters.
func TestScaling_keepsTheLastReplica(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j := w.running(t, strings.Replace(freeShop, "    requirements:",
		"    scaling: {minReplicas: 0, maxReplicas: 2}\n    requirements:", 1))
	scale := func(which string) *answer {
		return w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", body{
			"policyName": "p", "remediation": which, "subject": body{"appInstance": g.ID, "appComponent": "web"},
		})
	}
	require.Contains(t, scale("scale-down").refused(t, http.StatusConflict).Detail, "1 to 2")
	scale("scale-up").is(t, http.StatusOK)
	w.finish(t, w.hub, hubAgent, w.job(t, j.ID))
	require.Contains(t, scale("scale-up").refused(t, http.StatusConflict).Detail, "1 to 2")
}

// TestScaling_ofSeveralCopies: a copy at its limit does not prevent the scaling of the others, and history does not
// report that nothing was done.
func TestScaling_ofSeveralCopies(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]int{"the first is at its limit": 0, "the last is": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.saveLabels(t, "disk", map[string]string{"hub-1": "first", "hub-2": "second"})
			g := w.submit(t, strings.NewReplacer("architecture: x86_64", "nodelabel: {key: disk, values: [first, second]}",
				"    requirements:", "    scaling: {maxReplicas: 2}\n    requirements:").Replace(loadedShop("scale-up")))
			for _, j := range g.Jobs {
				w.finish(t, w.hub, hubAgent, j)
			}
			scale := func(subject body) *answer {
				return w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", body{
					"policyName": "p", "remediation": "scale-up", "subject": subject,
				})
			}
			scale(body{"resourceId": g.Jobs[full].ID}).is(t, http.StatusOK)
			w.finish(t, w.hub, hubAgent, w.job(t, g.Jobs[full].ID))
			p := w.policiesOf(t, g.ID)["load"]
			w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", time.Now()))).is(t, http.StatusOK)
			require.Equal(t, standing{update, "scale-up", "Created", hubAgent}, w.job(t, g.Jobs[1-full].ID).stands())
			require.Equal(t, standing{update, "scale-up", "Finished", hubAgent}, w.job(t, g.Jobs[full].ID).stands())
			require.Empty(t, w.messages(t, g.ID, "policy.skipped"))
			w.finish(t, w.hub, hubAgent, w.job(t, g.Jobs[1-full].ID))
			scale(body{"appInstance": g.ID}).refused(t, http.StatusConflict)
			w.legal(t)
		})
	}
}

func TestWebhook_takesWhatIsNoViolation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	am := w.alertmanager()
	stranger := alert(policy{ID: uuid.NewString(), Name: "x"}, "i", "firing", time.Now())
	for range 3 {
		got := decode[body](t, am.send(t, http.MethodPost, webhook, notice(stranger)).is(t, http.StatusOK))
		require.Equal(t, body{"new": 0.0, "repeated": 0.0, "ignored": 1.0}, got)
	}
	stranger["annotations"] = body{"plm_id": "65f5a3ced6ea3f831414a387"}
	am.send(t, http.MethodPost, webhook, notice(stranger, body{
		"status": "firing", "startsAt": time.Now(), "labels": body{"alertname": "Watchdog"},
	}, body{"status": "firing", "startsAt": time.Now()})).is(t, http.StatusOK)
	am.send(t, http.MethodPost, webhook, notice()).is(t, http.StatusOK)
	var rows int
	require.NoError(t, w.DB.QueryRow(t.Context(), `select count(*) from policy_alerts`).Scan(&rows))
	require.Equal(t, 4, rows, "recorded once each")

	// A foreign alert with texts that no event can carry does not prevent the others from being received.
	g, _, p := w.loaded(t, "none")
	got := decode[body](t, am.send(t, http.MethodPost, webhook, notice(body{
		"status": "firing", "startsAt": time.Now(), "labels": body{"alertname": "Full\x00"},
		"annotations": body{"description": strings.Repeat("x", 200<<10), "plm_id": "\x00"},
	}, alert(p, g.ID, "firing", time.Now()))).is(t, http.StatusOK))
	require.Equal(t, body{"new": 1.0, "repeated": 0.0, "ignored": 1.0}, got)

	// Nor does a made-up time of its sender, which Alertmanager passes on.
	for i, at := range []string{"1970-01-01T00:00:00Z", "2999-12-31T00:00:00Z"} {
		ours := alert(p, g.ID, "firing", time.Now().Add(time.Duration(i+1)*time.Second))
		got := decode[body](t, am.send(t, http.MethodPost, webhook, notice(body{
			"status": "firing", "startsAt": at, "labels": body{"alertname": "MadeUp"},
		}, ours)).is(t, http.StatusOK))
		require.Equal(t, body{"new": 1.0, "repeated": 0.0, "ignored": 1.0}, got)
	}
}

func TestWebhook_refusesWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	am := w.alertmanager()
	good := func() body { return alert(policy{ID: uuid.NewString()}, "i", "firing", time.Now()) }
	with := func(key string, value any) body {
		a := good()
		a[key] = value
		return notice(good(), a)
	}
	w.unchanged(t, func() {
		for field, sent := range map[string]body{
			"alerts":                {"version": "4"},
			"version":               {"version": "3", "alerts": []body{}},
			"alerts[1].status":      with("status", "pending"),
			"alerts[1].startsAt":    with("startsAt", "0001-01-01T00:00:00Z"),
			"alerts[1].fingerprint": with("fingerprint", strings.Repeat("f", 200)),
			"alerts[1].labels":      with("labels", body{"a": "b\x00c"}),
			"alerts[1].annotations": with("annotations", []string{"x"}),
		} {
			require.Contains(t, am.send(t, http.MethodPost, webhook, sent).fields(t), field)
		}
		far := with("startsAt", time.Now().AddDate(1, 0, 0))
		require.Equal(t, []string{"alerts[1].startsAt"}, am.send(t, http.MethodPost, webhook, far).fields(t))
		am.call(t, http.MethodPost, webhook, strings.Repeat("x", 10<<20)).refused(t, http.StatusRequestEntityTooLarge)
	})
}

// TestWebhook_bearsClocksThatDiffer: an episode is identified by its start, whichever clock that comes from.
func TestWebhook_bearsClocksThatDiffer(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"ahead": 3 * time.Hour, "behind": -72 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g, _, p := w.loaded(t, "none")
			at := time.Now().Add(skew)
			for _, status := range []string{"firing", "firing", "resolved", "firing"} {
				w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, status, at))).is(t, http.StatusOK)
			}
			require.Equal(t, "enforced", w.seePolicy(t, p.ID).Status.Phase)
			w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", at.Add(time.Minute)))).is(t, 200)
			require.Equal(t, "violated", w.seePolicy(t, p.ID).Status.Phase)
			require.Len(t, w.messages(t, g.ID, "policy.remediated"), 2)
		})
	}
}

func TestViolation_ofAPolicyThatIsDeletedWhileItFires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _, p := w.loaded(t, "redeploy")
	w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", time.Now()))).is(t, http.StatusOK)
	w.operator.call(t, http.MethodDelete, polman+"/policies/"+p.ID, "").is(t, http.StatusNoContent)
	ended := alert(p, g.ID, "resolved", time.Now())
	got := decode[body](t, w.alertmanager().send(t, http.MethodPost, webhook, notice(ended)).is(t, http.StatusOK))
	require.Equal(t, 1.0, got["ignored"])
}

func TestViolation_ofAnApplicationThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j, p := w.loaded(t, "redeploy")
	_, err := w.DB.Exec(t.Context(), `update applications set deleted_at = now() where id = $1`, g.ID)
	require.NoError(t, err)
	before := w.seeRaw(t, j.ID)
	w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", time.Now()))).is(t, http.StatusOK)
	require.Equal(t, before, w.seeRaw(t, j.ID))
	var status string
	require.NoError(t, w.DB.QueryRow(t.Context(), `select status from policy_actions where policy_id = $1`, p.ID).Scan(&status))
	require.Equal(t, "skipped", status)
}

// seeRaw is the job's row, also of an application that was deleted.
func (w *world) seeRaw(t testing.TB, id string) string {
	t.Helper()
	var row string
	require.NoError(t, w.DB.QueryRow(t.Context(), `select to_jsonb(j)::text from jobs j where id = $1`, id).Scan(&row))
	return row
}

// TestWhatWaits_isPlacedAgainFromTimeToTime: not everything that frees capacity emits an event.
func TestWhatWaits_isPlacedAgainFromTimeToTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	busy := func(percent float64) {
		taxonomy := inprocess.Topology(time.Now())
		for _, cluster := range taxonomy.Cluster {
			for name, node := range cluster.Node {
				node.DynamicMetrics.CPUUsagePercent = topology.Known(percent)
				cluster.Node[name] = node
			}
		}
		w.SaveTopology(taxonomy)
	}
	busy(85)
	j := w.submit(t, freeShop+"policies: [{name: calm, type: node-resource-usage, cpu_threshold_perc: 0.8}]\n").Jobs[0]
	busy(70)
	require.Empty(t, w.job(t, j.ID).Targets.Node, "nobody was told")
	require.NoError(t, w.Broker.TickOne(t.Context(), "jobmanager-displace"))
	require.NotEmpty(t, w.job(t, j.ID).Targets.Node)
}

// TestViolation_ofAJobThatIsBusy: it is delivered again until the job can be changed.
func TestViolation_ofAJobThatIsBusy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j, p := w.patched(t)
	w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", time.Now()))).is(t, http.StatusOK)
	failures := w.Broker.Failures()
	require.Len(t, failures, 1)
	require.Contains(t, fmt.Sprint(failures[0]), "answered 409")
	w.finish(t, w.hub, hubAgent, w.job(t, j.ID))
	w.again(t, "remediation.requested")
	w.again(t, "remediation.requested") // which changes nothing
	require.Equal(t, standing{update, "scale-up", "Created", hubAgent}, w.job(t, j.ID).stands())
}

// saveLabelled stores the infrastructure with a label on the named nodes.
func (w *world) saveLabelled(t testing.TB, key, value string, nodes ...string) {
	t.Helper()
	values := map[string]string{}
	for _, name := range nodes {
		values[name] = value
	}
	w.saveLabels(t, key, values)
}

// saveLabels is saveLabelled with a value for each node.
func (w *world) saveLabels(t testing.TB, key string, values map[string]string) {
	t.Helper()
	taxonomy := inprocess.Topology(time.Now())
	for _, cluster := range taxonomy.Cluster {
		for name, node := range cluster.Node {
			if value, labelled := values[name]; labelled {
				node.Labels = map[string]string{key: value}
				cluster.Node[name] = node
			}
		}
	}
	w.SaveTopology(taxonomy)
}
