package telemetry_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// probe is a rule that belongs to no policy.
const probe = `{"data": {"groups": [{"name": "probe", "rules": [{
	"alert": "LowScore", "expr": "SCA_score{agent_hostname=\"cloud-1\"} < 40", "for": "0", "labels": {},
	"annotations": {"value": "{{ $value }}"}}]}]}}`

// TestTheLoop starts with the way alone, from a scrape to the webhook, and goes on with each kind of policy that a
// descriptor may hold: violated for real, remedied, and well again.
func TestTheLoop(t *testing.T) {
	w := newWorld(t)
	t.Run("a rule fires, the webhook is told, and so when it is over", func(t *testing.T) {
		w := w.in(t)
		var put struct{ File string }
		require.Equal(t, http.StatusOK, w.ask("operator", http.MethodPost, "/rules/", probe, &put))
		promtool(t, w.rules)
		w.set("cloud-1", map[string]string{"sca": "20"})
		w.eventually("it fires", func() bool { return w.told("LowScore", "firing") != nil })
		d := w.told("LowScore", "firing")
		require.Equal(t, http.StatusOK, d.status, "Alertmanager's token is taken, and an alert of no policy is no fault")
		require.Equal(t, "4", d.Version)
		require.Equal(t, "20", d.Alerts[0].Annotations["value"])
		w.set("cloud-1", map[string]string{"sca": ""})
		w.eventually("it is over", func() bool { return w.told("LowScore", "resolved") != nil })
		require.Equal(t, http.StatusNoContent, w.ask("operator", http.MethodDelete, "/rules/"+put.File, "", nil))
	})
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) { w.in(t).runs(kind) })
	}
}

// in is the world within a subtest.
func (w *world) in(t *testing.T) *world {
	return &world{t: t, home: w.home, rules: w.rules, host: w.host, journal: w.journal}
}

// kind is a kind of policy, and what violates it on the node where the component is.
type kind struct {
	name    string
	policy  string // in the component's policies
	violate map[string]string
	heal    map[string]string
}

var kinds = []kind{
	{"a security level", "security: medium", map[string]string{"sca": "5"}, map[string]string{"sca": ""}},
	{
		"the node's cpu", usage("cpu_threshold_perc: 0.85"),
		map[string]string{"cpu": "0.98"},
		map[string]string{"cpu": ""},
	},
	{
		"the node's memory", usage("memory_threshold_perc: 0.9"),
		map[string]string{"mem": "0.98"},
		map[string]string{"mem": ""},
	},
}

// usage is a policy about the node as a whole.
func usage(threshold string) string {
	return "{type: node-resource-usage, " + threshold + ", exclude_app_resources: false, remediation: redeploy}"
}

// runs takes an application through a violation of its policy.
func (w *world) runs(k kind) {
	example, err := os.ReadFile("../../examples/hello.yaml")
	require.NoError(w.t, err)
	text := strings.Replace(string(example), "policies:\n", "policies:\n      - "+k.policy+"\n", 1)
	var app struct{ ID, Detail string }
	status := w.ask("operator", http.MethodPost, "/jobmanager/groups", text, &app)
	require.Equal(w.t, http.StatusCreated, status, app.Detail)
	w.available(app.ID)
	before := w.nodeOf(app.ID, "web")
	w.eventually("its policies are watched", func() bool { return w.phases(app.ID)["enforced"] > 0 })
	promtool(w.t, w.rules)

	w.set(before, k.violate)
	w.eventually("the component leaves the node", func() bool { return w.nodeOf(app.ID, "web") != before })
	w.available(app.ID)
	w.set(before, k.heal)
	w.eventually("all policies hold again", func() bool {
		phases := w.phases(app.ID)
		return phases["violated"] == 0 && phases["enforced"] > 0
	})
	require.Equal(
		w.t,
		http.StatusAccepted,
		w.ask("operator", http.MethodDelete, "/jobmanager/groups/"+app.ID+"?stop=true", "", nil),
	)
	w.eventually("it is gone", func() bool {
		return w.ask("viewer", http.MethodGet, "/jobmanager/groups/"+app.ID, "", nil) == http.StatusNotFound
	})
}

func (w *world) available(app string) {
	w.t.Helper()
	w.eventually("it is available", func() bool {
		var g struct{ Status string }
		return w.ask("viewer", http.MethodGet, "/jobmanager/groups/"+app, "", &g) == http.StatusOK && g.Status == "Available"
	})
}

// nodeOf returns where the component is, "" while it is nowhere.
func (w *world) nodeOf(app, component string) string {
	w.t.Helper()
	var jobs []struct {
		Type        string
		Instruction struct{ ComponentName string }
		Targets     struct {
			NodeName string `json:"node_name"`
		}
	}
	require.Equal(w.t, http.StatusOK, w.ask("viewer", http.MethodGet, "/jobmanager/jobs?app="+app, "", &jobs))
	for _, j := range jobs {
		if j.Instruction.ComponentName == component && j.Type != "DeleteDeployment" {
			return j.Targets.NodeName
		}
	}
	return ""
}

// phases counts the application's policies by phase.
func (w *world) phases(app string) map[string]int {
	w.t.Helper()
	var list []struct {
		Name   string
		Status struct{ Phase string }
	}
	require.Equal(w.t, http.StatusOK, w.ask("viewer", http.MethodGet, "/polman/registry/api/v1/policies/", "", &list))
	counted := map[string]int{}
	for _, p := range list {
		if strings.Contains(p.Name, app) {
			counted[p.Status.Phase]++
		}
	}
	return counted
}
