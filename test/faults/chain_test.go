package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/test/inprocess"
)

const (
	agentID = "agent-edge"
	rivalID = "agent-rival"
)

const webhook = "/polman/watcher/api/v1/webhooks/alertmanager"

// shop is the application in the chain; the replacement changes image.
func shop(image string) string {
	return fmt.Sprintf(`
name: shop
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 500m}
    manifests: [{name: web, manifest: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {image: %s}}}]
  - name: db
    type: kubernetes
    requirements: {cpu: 200m}
    manifests: [{name: db, manifest: {apiVersion: v1, kind: Pod, metadata: {name: db}}}]
policies:
  - {name: load, apply-to: web, fromTemplate: app-host-cpu-usage-perc, remediation: redeploy, variables: {threshold: 0.8}}
`, image)
}

// alert is a message of Alertmanager about the policy of shop.
func alert(instance, status string) string {
	name := "shop-" + instance + "-load"
	return fmt.Sprintf(`{"version": "4", "alerts": [{"status": %q, "startsAt": "2026-01-02T03:04:05Z", "fingerprint": "f-1",
"labels": {"alertname": %q, "icos_app_instance": %q, "icos_app_component": "web"},
"annotations": {"plm_id": %q, "plm_expr_value": "0.9"}}]}`, status, name+":rule-0", instance, registry.ID(instance, name))
}

// crate is the application in the managed chain: something with pods whose state an agent can report.
func crate(image string) string {
	return fmt.Sprintf(`
name: crate
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 500m}
    manifests:
      - name: web
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: web}
          spec:
            replicas: 1
            selector: {matchLabels: {app: web}}
            template:
              metadata: {labels: {app: web}}
              spec: {containers: [{name: web, image: %s}]}
`, image)
}

// composed is the same as a compose file.
func composed(image string) string {
	return fmt.Sprintf(`
name: crate
components:
  - name: web
    type: docker
    requirements: {cpu: 500m}
    manifests: [{name: web, manifest: {services: {web: {image: %s}}}}]
`, image)
}

// step makes a change whose result must not depend on a restart in the middle, and waits for all reactions.
func (w *world) step(name string, do func(), between func(step string)) {
	w.t.Helper()
	w.begin(name)
	do()
	w.deliverAll()
	w.end()
	between(name)
}

// user sends a request like a person would, until it is answered as expected.
func (w *world) user(method, path, body string, want ...int) answer {
	w.t.Helper()
	a := w.call("user", method, path, http.Header{"Idempotency-Key": {"one"}}, body)
	require.Contains(w.t, want, a.status, "%s %s: %s", method, path, compact(a.body))
	return a
}

// managedChain is the life of an application that our own functions deploy.
func (w *world) managedChain(between func(step string)) {
	w.t.Helper()
	var group struct {
		ID string `json:"id"`
	}
	// How far the places are when a delivery has been repeated depends on the fault, so they are looked at when they have come to rest.
	step := func(name string, do func()) { w.step(name, do, func(string) {}) }
	rest := func(name string, do func()) { w.step(name, do, between) }
	step("see the topology", func() { w.see() })
	step("submit", func() {
		a := w.user(http.MethodPost, "/jobmanager/groups", w.managed.crate("a"), http.StatusCreated)
		require.NoError(w.t, json.Unmarshal(a.body, &group))
	})
	rest("run", w.run)
	require.Equal(w.t, 1, w.available())
	step("drain", func() { w.see("one-a") })
	rest("run elsewhere", w.run)
	require.Equal(w.t, 1, w.available())
	step("replace", func() { w.user(http.MethodPut, "/jobmanager/groups/"+group.ID, w.managed.crate("b"), http.StatusOK) })
	rest("run the replacement", w.run)
	require.Equal(w.t, 1, w.available())
	step("stop", func() { w.user(http.MethodPut, "/jobmanager/groups/stop/"+group.ID, "", http.StatusOK) })
	rest("remove", w.run)
	require.Zero(w.t, w.available())
	step("start", func() { w.user(http.MethodPut, "/jobmanager/groups/start/"+group.ID, "", http.StatusOK) })
	rest("run again", w.run)
	require.Equal(w.t, 1, w.available())
	step("delete", func() {
		w.user(http.MethodDelete, "/jobmanager/groups/"+group.ID+"?stop=true", "", http.StatusAccepted, http.StatusNotFound)
	})
	rest("remove for good", w.run)
	step("look for it", func() { w.user(http.MethodGet, "/jobmanager/groups/"+group.ID, "", http.StatusNotFound) })
	w.managed.empty(w.t)
}

// talkers call each other, and do not fit on one node unless the second is small.
func talkers(cpu string) string {
	return fmt.Sprintf(`
name: shop
components:
  - name: hello
    type: kubernetes
    requirements: {cpu: "3"}
    communication: [{incoming: world-svc}]
    manifests: [{name: hello, manifest: {apiVersion: v1, kind: Pod, metadata: {name: hello}, spec: {containers: [{name: h, image: i}]}}}]
  - name: world
    type: kubernetes
    requirements: {cpu: %q}
    communication: [{outgoing: world-svc}]
    manifests:
      - {name: world, manifest: {apiVersion: v1, kind: Pod, metadata: {name: world}, spec: {containers: [{name: w, image: i}]}}}
      - {name: world-svc, manifest: {apiVersion: v1, kind: Service, metadata: {name: world-svc}, spec: {ports: [{port: 80}]}}}
`, cpu)
}

// linkedChain is the life of an application whose components are in two clusters.
func (w *world) linkedChain(between func(step string)) {
	w.t.Helper()
	var group struct {
		ID string `json:"id"`
	}
	step := func(name string, do func()) { w.step(name, do, between) }
	linked := func(imports, exports int) {
		w.t.Helper()
		have := map[string]int{}
		for _, kind := range []string{"/imports/", "/exports/"} {
			for _, name := range clusters {
				have[kind] += len(w.managed.servers[name].Paths(kind))
			}
		}
		require.Equal(w.t, map[string]int{"/imports/": imports, "/exports/": exports}, have)
	}
	// How far the clusters are when a delivery has been repeated depends on the fault, so they are looked at when they have come
	// to rest.
	rest := func(name string, do func()) {
		step(name, func() {
			do()
			w.deliverAll()
			w.run()
		})
	}
	step("see the topology", func() { w.see() })
	rest("submit", func() {
		a := w.user(http.MethodPost, "/jobmanager/groups", talkers("3"), http.StatusCreated)
		require.NoError(w.t, json.Unmarshal(a.body, &group))
	})
	require.Equal(w.t, 2, w.available())
	linked(1, 1)
	rest("stop", func() { w.user(http.MethodPut, "/jobmanager/groups/stop/"+group.ID, "", http.StatusOK) })
	linked(0, 0)
	rest("start", func() { w.user(http.MethodPut, "/jobmanager/groups/start/"+group.ID, "", http.StatusOK) })
	require.Equal(w.t, 2, w.available())
	linked(1, 1)
	rest("need less", func() { w.user(http.MethodPut, "/jobmanager/groups/"+group.ID, talkers("200m"), http.StatusOK) })
	rest("drain", func() { w.see("two-a") })
	require.Equal(w.t, 2, w.available())
	linked(0, 0)
	rest("delete", func() {
		w.user(http.MethodDelete, "/jobmanager/groups/"+group.ID+"?stop=true", "", http.StatusAccepted, http.StatusNotFound)
	})
	for _, server := range w.managed.servers {
		require.Empty(w.t, server.Paths("/manifestworks/"))
	}
}

// run lets the clusters carry out their requests and the functions synchronise, until nothing changes any more.
func (w *world) run() {
	w.t.Helper()
	for range 3 {
		w.managed.work()
		w.tick("deploymentmanager-sync-" + w.managed.orchestrator)
		if w.managed.linked {
			w.tick("clusterlink-sync")
		}
		w.deliverAll()
	}
}

// available is how many copies run, according to the database.
func (w *world) available() (n int) {
	w.t.Helper()
	w.query(`select count(*) from jobs where conditions @> '[{"type": "Available", "status": "True"}]'`,
		func(row pgx.CollectableRow) error { return row.Scan(&n) })
	return n
}

// chain is the whole life of an application that agents deploy.
func (w *world) chain(between func(step string)) {
	w.t.Helper()
	var group struct {
		ID string `json:"id"`
	}
	step := func(name string, do func()) { w.step(name, do, between) }
	user := w.user
	step("see the topology", func() { w.see() })
	step("submit", func() {
		a := user(http.MethodPost, "/jobmanager/groups", shop("a"), http.StatusCreated)
		require.NoError(w.t, json.Unmarshal(a.body, &group))
	})
	step("execute", w.work)
	step("drain", func() { w.see("n1") })
	step("execute elsewhere", w.work)
	step("violate", func() {
		a := w.call("alertmanager", http.MethodPost, webhook, nil, alert(group.ID, "firing"))
		require.Equal(w.t, http.StatusOK, a.status, compact(a.body))
	})
	step("execute the move", w.work)
	step("resolve", func() {
		a := w.call("alertmanager", http.MethodPost, webhook, nil, alert(group.ID, "resolved"))
		require.Equal(w.t, http.StatusOK, a.status, compact(a.body))
	})
	step("replace", func() { user(http.MethodPut, "/jobmanager/groups/"+group.ID, shop("b"), http.StatusOK) })
	step("execute the replacement", w.work)
	step("remediate", func() {
		user(http.MethodPost, "/jobmanager/policies/incompliance", fmt.Sprintf(
			`{"id": "violation-1", "policyName": "p", "remediation": "scale-up", "subject": {"appInstance": %q, "appComponent": "web"}}`, group.ID), http.StatusOK)
	})
	step("execute the remediation", w.work)
	step("stop", func() { user(http.MethodPut, "/jobmanager/groups/stop/"+group.ID, "", http.StatusOK) })
	step("execute the removal", w.work)
	step("start", func() { user(http.MethodPut, "/jobmanager/groups/start/"+group.ID, "", http.StatusOK) })
	step("execute again", w.work)
	step("delete", func() {
		// 404 is the answer to a repeated deletion if the first answer was lost.
		user(http.MethodDelete, "/jobmanager/groups/"+group.ID+"?stop=true", "", http.StatusAccepted, http.StatusNotFound)
	})
	step("execute the last removal", w.work)
	step("look for it", func() { user(http.MethodGet, "/jobmanager/groups/"+group.ID, "", http.StatusNotFound) })
}

// see stores a topology like the aggregator: one cluster of three nodes, or those of the hub with one each. Drained
// nodes are unschedulable.
func (w *world) see(drained ...string) {
	w.t.Helper()
	now := time.Now().Add(w.ahead)
	nodes := func(names ...string) map[string]topology.Node {
		all := map[string]topology.Node{}
		for i, name := range names {
			schedulable := !slices.Contains(drained, name)
			all[name] = topology.Node{
				Name: name, Schedulable: &schedulable, LastSeen: topology.Known(float64(now.Unix())), ScaScore: topology.Known(float64(90 - 10*i)),
				StaticMetrics: topology.StaticMetrics{CPUArchitecture: "amd64", CPUCores: topology.Known(4), RAMMemory: topology.Known(8 << 30)},
			}
		}
		return all
	}
	taxonomy := &topology.Taxonomy{Cluster: map[string]topology.Cluster{}}
	if w.managed == nil {
		taxonomy.Cluster["edge"] = topology.Cluster{
			Type: "ocm", Name: "edge", Engine: "Kubernetes", AgentID: agentID, Node: nodes("n1", "n2", "n3"),
		}
	} else {
		for _, name := range clusters {
			taxonomy.Cluster[name] = topology.Cluster{
				Type: w.managed.orchestrator, Name: name, Engine: w.managed.engine, Node: nodes(name + "-a"), ClusterLink: w.managed.linked,
			}
		}
	}
	save := func() error {
		return store.Classify(w.db.Tx(w.t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := topology.Save(ctx, tx, taxonomy, now, time.Hour)
			return err
		}))
	}
	err := save()
	for problem.KindOf(err) == problem.Unavailable { // Postgres was restarted meanwhile
		err = save()
	}
	require.NoError(w.t, err)
	require.NoError(w.t, w.db.Flush(w.t.Context()))
}

// agent is an agent whose calls reach the functions in their child, however often that has to be restarted.
func (w *world) agent(id string) *inprocess.Agent {
	return inprocess.NewAgent(w.t, "ocm", id, func(as, method, path, body string) (int, []byte) {
		a := w.call(as, method, path, nil, body)
		w.repeats = a.repeats
		return a.status, a.body
	})
}

// work does everything that the agent may do, while a rival tries to take each job as well.
func (w *world) work() {
	w.t.Helper()
	agent, rival := w.agent(agentID), w.agent(rivalID)
	for _, j := range agent.List() {
		status, answer := agent.Promote(j.ID)
		require.Equal(w.t, http.StatusNoContent, status, compact(answer))
		w.claim(j, agentID)
		status, _ = rival.Promote(j.ID)
		require.Equal(w.t, http.StatusConflict, status, "a second agent was told it owns the job")

		for _, state := range []string{"Progressing", "Finished"} {
			status, answer = agent.Send(inprocess.Report{
				Job: j, State: state, Resource: fmt.Sprintf("res-%s-%d", j.Instruction.Component, j.Epoch), Condition: inprocess.Condition{
					Type: "Available", Status: map[bool]string{true: "True", false: "False"}[state == "Finished"], Reason: "Test",
				},
			})
			if status == http.StatusConflict && w.repeats > 0 && state == "Progressing" {
				continue
			}
			require.Equal(w.t, http.StatusOK, status, compact(answer))
		}
	}
}

// claim records which agent was told that it owns the job at an epoch; there must be only one.
func (w *world) claim(j inprocess.Job, agent string) {
	w.t.Helper()
	key := fmt.Sprintf("%s/%d/%s", j.ID, j.Epoch, j.Type)
	if other, taken := w.promoted[key]; taken {
		require.Equal(w.t, other, agent, "job %s has two owners", key)
	}
	w.promoted[key] = agent
}
