package contracts_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
)

const polman = "/polman/registry/api/v1"

// policy is the fields of a policy that the tests read.
type policy struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Subject body   `json:"subject"`
	Spec    struct {
		TemplateName string `json:"templateName"`
	} `json:"spec"`
	Variables map[string]any `json:"variables"`
	Version   int64          `json:"version"`
	Status    struct {
		Rendered body            `json:"renderedSpec"`
		Backends map[string]body `json:"measurementBackends"`
		Events   []struct {
			Type    string `json:"type"`
			Details body   `json:"details"`
		} `json:"events"`
		Phase string `json:"phase"`
	} `json:"status"`
}

// happened lists the types of the policy's events.
func (p policy) happened() []string {
	var types []string
	for _, e := range p.Status.Events {
		types = append(types, e.Type)
	}
	return types
}

// usage is a policy about the web component of an instance.
func usage(instance string) body {
	return body{
		"name": "cpu", "subject": body{"type": "app", "appName": "shop", "appInstance": instance, "appComponent": "web"},
		"spec":      body{"type": "telemetryQuery", "expr": "container_cpu_usage{ {{subject_label_selector}} }", "violatedIf": "> {{limit}}"},
		"variables": body{"limit": 0.5},
		"action":    body{"url": "", "httpMethod": "POST", "extraParams": body{"remediation": "redeploy"}},
	}
}

func (w *world) policy(t testing.TB, given body) policy {
	t.Helper()
	return decode[policy](t, w.operator.send(t, http.MethodPost, polman+"/policies/", given).is(t, http.StatusOK))
}

func (w *world) seePolicy(t testing.TB, id string) policy {
	t.Helper()
	return decode[policy](t, w.viewer.get(t, polman+"/policies/"+id))
}

func TestPolicy_livesFromItsCreationToItsDeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.policy(t, usage("elsewhere-1"))
	require.Equal(t, "enforced", p.Status.Phase)
	require.Equal(t, []string{"created", "rendered", "activated"}, p.happened())
	require.Contains(t, p.Status.Rendered["expr"], `icos_app_instance="elsewhere-1"`)
	require.Equal(t, p.ID, w.policy(t, usage("elsewhere-1")).ID, "the same policy twice is one")
	other := usage("elsewhere-1")
	other["variables"] = body{"limit": 0.9}
	w.operator.send(t, http.MethodPost, polman+"/policies/", other).refused(t, http.StatusConflict)

	for range 2 {
		w.operator.call(t, http.MethodPost, polman+"/policies/"+p.ID+"/deactivate", "").is(t, http.StatusNoContent)
		require.Equal(t, "inactive", w.seePolicy(t, p.ID).Status.Phase)
	}
	for range 2 {
		w.operator.call(t, http.MethodPost, "/registry/api/v1/policies/"+p.ID+"/activate", "").is(t, http.StatusNoContent)
		require.Equal(t, "enforced", w.seePolicy(t, p.ID).Status.Phase)
	}
	require.Equal(t, []string{"created", "rendered", "activated", "deactivated", "activated"}, w.seePolicy(t, p.ID).happened(),
		"a second time is no event")

	seen := w.viewer.call(t, http.MethodGet, polman+"/policies/"+p.ID, "").header.Get("ETag")
	text, err := json.Marshal(other)
	require.NoError(t, err)
	change := func(match string) *answer {
		return w.operator.call(t, http.MethodPut, polman+"/policies/"+p.ID, string(text), "If-Match", match)
	}
	changed := change(seen)
	require.Contains(t, decode[policy](t, changed.is(t, http.StatusOK)).Status.Rendered["expr"], "> 0.9")
	require.NotEqual(t, seen, changed.header.Get("ETag"))
	change(seen).refused(t, http.StatusPreconditionFailed)
	w.operator.call(t, http.MethodDelete, polman+"/policies/"+p.ID, "", "If-Match", seen).refused(t, http.StatusPreconditionFailed)
	other["name"] = "memory"
	require.Equal(t, []string{"name"}, w.operator.send(t, http.MethodPut, polman+"/policies/"+p.ID, other).fields(t))

	w.operator.call(t, http.MethodDelete, polman+"/policies/"+p.ID, "").is(t, http.StatusNoContent)
	d := w.viewer.call(t, http.MethodGet, polman+"/policies/"+p.ID, "").refused(t, http.StatusNotFound)
	require.Equal(t, http.StatusNotFound, d.StatusCode, "as clients of ICOS read it")
	again := w.policy(t, usage("elsewhere-1"))
	require.Equal(t, "enforced", again.Status.Phase, "what was deleted can be made again")
}

// TestPolicy_whoseFirstTransactionIsUndone: after a rollback, for instance by a deadlock, the next transaction does
// everything, including the rule.
func TestPolicy_whoseFirstTransactionIsUndone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.DB.Exec(t.Context(), `create sequence tries;
create function undo_first() returns trigger language plpgsql security definer as
'begin if nextval(''tries'') = 1 then raise deadlock_detected; end if; return null; end';
create constraint trigger undo_first after insert on outbox deferrable initially deferred
for each row execute function undo_first()`)
	require.NoError(t, err)
	p := w.policy(t, usage("elsewhere-1"))
	require.Equal(t, "enforced", p.Status.Phase)
	require.Equal(t, []string{"created", "rendered", "activated"}, p.happened())
	require.NoError(t, w.Broker.Drain(t.Context()))
	require.True(t, slices.ContainsFunc(w.Broker.Accepted(), func(e cloudevents.Event) bool {
		return e.Type() == events.PolicyChanged && e.Subject() == p.ID
	}), "its rule follows")
}

// TestPolicy_namesItsApplicationInAnyForm: a policy may write the id in any form; it is stored in the form that
// telemetry and queries for the application's policies use.
func TestPolicy_namesItsApplicationInAnyForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _ := w.running(t, freeShop)
	p := w.policy(t, usage(strings.ToUpper(g.ID)))
	require.Equal(t, g.ID, p.Subject["appInstance"])
	require.Contains(t, p.Status.Rendered["expr"], `icos_app_instance="`+g.ID+`"`)
	require.Equal(t, p.ID, w.policy(t, usage(g.ID)).ID)
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, "").is(t, http.StatusOK)
	require.Equal(t, "inactive", w.seePolicy(t, p.ID).Status.Phase)
}

func TestPolicies_areListedByWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, instance := range []string{"one", "two"} {
		w.policy(t, usage(instance))
	}
	host := body{
		"name": "Host", "subject": body{"hostId": "h1", "agentId": "*"}, "variables": body{"maxCpuUsagePercent": 0.9},
		"spec": body{"templateName": "cpu-usage-host"}, "action": body{"url": "https://receiver.example/", "httpMethod": "GET"},
	}
	sleeping := decode[policy](t, w.operator.send(t, http.MethodPost, polman+"/policies/?do_not_activate=true", host).is(t, 200))
	require.Equal(t, "inactive", sleeping.Status.Phase)
	for query, want := range map[string]int{
		"": 3, "app=one": 1, "app=shop": 2, "subject=host": 1, "subject=web": 2, "phase=enforced": 2, "phase=inactive": 1,
		"name=cpu": 2, "name=c": 0, "search=HOS": 1, "app=two&phase=enforced": 1, "phase=violated": 0,
	} {
		require.Len(t, decode[[]policy](t, w.viewer.get(t, polman+"/policies?"+query)), want, query)
	}
	first := w.viewer.get(t, polman+"/policies/?limit=2")
	require.Contains(t, first.header.Get("Link"), `rel="next"`)
	require.Equal(t, body{
		"total": 3.0, "active": 2.0, "inactive": 1.0, "enforced": 2.0, "violated": 0.0, "unknown": 0.0,
	}, decode[body](t, w.nobody.get(t, polman+"/stats/")))
}

func TestPolicy_refusesWhatCannotBeKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _ := w.running(t, hubShop)
	with := func(change func(body)) body {
		b := usage("x")
		change(b)
		return b
	}
	for name, row := range map[string]struct {
		given  body
		fields []string
	}{
		"nothing":                {body{}, []string{"name", "subject.type", "spec.type"}},
		"an unknown placeholder": {with(func(b body) { b["variables"] = body{} }), []string{"variables.limit"}},
		"a text for a number":    {with(func(b body) { b["variables"] = body{"limit": "0 or vector(1)"} }), nil},
		"a template of none":     {with(func(b body) { b["spec"] = body{"templateName": "x"} }), []string{"spec.templateName"}},
		"a method of none":       {with(func(b body) { b["action"] = body{"url": "", "httpMethod": "TRACE"} }), []string{"action.httpMethod"}},
		"a URL that is none":     {with(func(b body) { b["action"] = body{"url": "file:///etc/passwd", "httpMethod": "GET"} }), []string{"action.url"}},
		"a component of another": {with(func(b body) { b["subject"] = body{"appName": "shop", "appInstance": g.ID, "appComponent": "db"} }), []string{"subject.appComponent"}},
		"a list for a number":    {with(func(b body) { b["variables"] = body{"limit": []int{1}} }), []string{"variables.limit"}},
		"a number for an id":     {with(func(b body) { b["subject"] = body{"appName": "shop", "appInstance": 7} }), []string{"subject.appInstance"}},
		"a text for a threshold": {
			with(func(b body) { b["spec"] = body{"expr": "x", "thresholds": body{"warning": "many"}} }), []string{"spec.thresholds"},
		},
		"a waiting time of nobody": {with(func(b body) { b["properties"] = body{"pendingInterval": "soon"} }), []string{"properties.pendingInterval"}},
	} {
		t.Run(name, func(t *testing.T) {
			w.unchanged(t, func() {
				got := w.operator.send(t, http.MethodPost, polman+"/policies/", row.given).fields(t)
				if row.fields != nil {
					require.Subset(t, got, row.fields)
				}
			})
		})
	}
	foreign := with(func(b body) { b["spec"] = body{"expr": `container_cpu_usage > 0.8`} })
	w.unchanged(t, func() {
		w.operator.send(t, http.MethodPost, polman+"/policies/", foreign).refused(t, http.StatusForbidden)
	})
	w.as("admin").send(t, http.MethodPost, polman+"/policies/", foreign).is(t, http.StatusOK)
}

func TestVariables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.policy(t, usage("x"))
	at := polman + "/policies/" + p.ID + "/variables/"
	require.Equal(t, body{"limit": 0.5}, decode[body](t, w.viewer.get(t, at)))
	w.operator.call(t, http.MethodPost, at+"limit/2", "").is(t, http.StatusNoContent)
	require.Contains(t, w.seePolicy(t, p.ID).Status.Rendered["expr"], "> 2")
	w.operator.call(t, http.MethodPost, at+"limit/0", "").is(t, http.StatusNoContent)
	require.Contains(t, w.seePolicy(t, p.ID).Status.Rendered["expr"], "> 0", "zero is a value too")
	w.unchanged(t, func() {
		w.operator.call(t, http.MethodDelete, at+"limit", "").refused(t, http.StatusNotAcceptable)
		w.operator.call(t, http.MethodDelete, at+"other", "").refused(t, http.StatusNotFound)
		for _, hostile := range []string{
			"%22%7D%20or%20up%7B", "1%29%20or%20vector%281", "a%0Ab", "%F0%9F%8C%8A", "%7B%7Bx%7D%7D", "NaN", "+Inf",
		} {
			require.NotEmpty(t, w.operator.call(t, http.MethodPost, at+"limit/"+hostile, "").fields(t), hostile)
		}
	})
	w.operator.call(t, http.MethodPost, at+"note/%22quoted%22%0A%7B%7D%20%E2%9C%93", "").is(t, http.StatusNoContent)
	require.Equal(t, "\"quoted\"\n{} ✓", w.seePolicy(t, p.ID).Variables["note"])
	w.operator.call(t, http.MethodDelete, at+"note", "").is(t, http.StatusNoContent)
	require.Contains(t, w.seePolicy(t, p.ID).happened(), "variableSet")
}

// watched is freeShop with two policies.
const watched = freeShop + `policies:
  - security: high
  - {name: load, type: custom, fromTemplate: app-host-cpu-usage-perc, remediation: scale-up, variables: {threshold: 0.8}}
`

func (w *world) policiesOf(t testing.TB, instance string) map[string]policy {
	t.Helper()
	found := map[string]policy{}
	for _, p := range decode[[]policy](t, w.viewer.get(t, polman+"/policies/?app="+instance)) {
		found[p.Name[strings.LastIndex(p.Name, "-")+1:]] = p
	}
	return found
}

func TestFollow_keepsThePoliciesOfAnApplication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _ := w.running(t, watched)
	made := w.policiesOf(t, g.ID)
	require.Len(t, made, 2)
	for _, p := range made {
		require.Equal(t, "enforced", p.Status.Phase)
	}
	phases := func() []string {
		var all []string
		for _, p := range w.policiesOf(t, g.ID) {
			all = append(all, p.Status.Phase)
		}
		return all
	}
	w.operator.call(t, http.MethodDelete, polman+"/policies/"+made["0"].ID, "").is(t, http.StatusNoContent)
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, "").is(t, http.StatusOK)
	require.Equal(t, []string{"inactive"}, phases(), "what a person deleted stays away")
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/start/"+g.ID, "").is(t, http.StatusOK)
	require.Equal(t, []string{"enforced"}, phases())

	next := strings.Replace(watched, "threshold: 0.8", "threshold: 0.7", 1)
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, next).is(t, http.StatusOK)
	now := w.policiesOf(t, g.ID)
	require.Len(t, now, 2, "another descriptor is asked anew")
	require.Equal(t, made["load"].ID, now["load"].ID)
	require.Contains(t, now["load"].Status.Rendered["expr"], "0.7")
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, freeShop).is(t, http.StatusOK)
	require.Empty(t, phases())

	w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, next).is(t, http.StatusOK)
	require.Len(t, phases(), 2)
	w.operator.call(t, http.MethodDelete, "/jobmanager/groups/"+g.ID+"?stop=true", "").is(t, http.StatusOK) // not taken again
	require.Empty(t, phases())
	var rows int
	require.NoError(t, w.DB.QueryRow(t.Context(), `select count(*) from policies`).Scan(&rows))
	require.Zero(t, rows, "nothing is left of a deleted application's policies")
}

// TestFollow_leavesOffWhatAPersonSwitchedOff: even if the policy gets another number, and its number goes to another
// policy.
func TestFollow_leavesOffWhatAPersonSwitchedOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type names = map[string]string // number -> template and phase
	const (
		security, cpu, device = "app-sca-score ", "app-host-cpu-usage-perc ", "device-available "
		off, on               = "inactive", "enforced"

		load = "{type: custom, fromTemplate: app-host-cpu-usage-perc, remediation: none, variables: {threshold: 0.8}}"
	)
	top := func(policies ...string) string {
		return freeShop + "policies:\n- " + strings.Join(policies, "\n- ") + "\n"
	}
	devices := func(list string) string {
		return strings.Replace(freeShop, "architecture: x86_64", "devices: ["+list+"]", 1)
	}
	g, _ := w.running(t, top("security: high"))
	switchOff := func(number string) {
		id := w.policiesOf(t, g.ID)[number].ID
		w.operator.call(t, http.MethodPost, polman+"/policies/"+id+"/deactivate", "").is(t, http.StatusNoContent)
	}
	switchOff("0")
	for _, row := range []struct {
		document string
		want     names
		then     string // is switched off
	}{
		{document: top(load, "security: high"), want: names{"0": cpu + on, "1": security + off}},
		{document: top("security: high", load), want: names{"0": security + off, "1": cpu + on}},
		{document: top("security: low"), want: names{"0": security + off}}, // the same policy with a milder limit
		{document: top("security: high", "security: low"), want: names{"0": security + on, "1": security + off}},
		{document: top("security: high", load), want: names{"0": security + on, "1": cpu + on}, then: "1"},
		{document: top("security: low", "security: high"), want: names{"0": security + on, "1": security + on}},
		{document: devices("a.b/video"), want: names{"0": device + on}, then: "0"},
		{document: devices("a.b/gps, a.b/video"), want: names{"0": device + on, "1": device + off}},
		{document: devices("a.b/gps, a.b/lidar"), want: names{"0": device + on, "1": device + on}},
	} {
		w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, row.document).is(t, http.StatusOK)
		got := names{}
		for number, p := range w.policiesOf(t, g.ID) {
			got[number] = p.Spec.TemplateName + " " + p.Status.Phase
		}
		require.Equal(t, row.want, got, row.document)
		if row.then != "" {
			switchOff(row.then)
		}
	}
}

// TestFollow_keepsWhatAPersonMadeAgain: events of the application do not change it, and do not restore it after another
// deletion. Only a new descriptor does.
func TestFollow_keepsWhatAPersonMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _ := w.running(t, watched)
	again := func() {
		w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, "").is(t, http.StatusOK)
		w.operator.call(t, http.MethodPut, "/jobmanager/groups/start/"+g.ID, "").is(t, http.StatusOK)
	}
	remove := func() {
		id := w.policiesOf(t, g.ID)["load"].ID
		w.operator.call(t, http.MethodDelete, polman+"/policies/"+id, "").is(t, http.StatusNoContent)
	}
	first := w.policiesOf(t, g.ID)["load"]
	remove()
	own := usage(g.ID)
	own["name"] = first.Name
	own["variables"] = body{"limit": 0.42}
	require.Equal(t, first.ID, w.policy(t, own).ID)
	again()
	kept := w.policiesOf(t, g.ID)["load"]
	require.Contains(t, kept.Status.Rendered["expr"], "0.42")
	require.Equal(t, "enforced", kept.Status.Phase)

	remove()
	again()
	require.NotContains(t, w.policiesOf(t, g.ID), "load", "it was theirs to take away")

	next := strings.Replace(watched, "threshold: 0.8", "threshold: 0.7", 1)
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, next).is(t, http.StatusOK)
	require.Contains(t, w.policiesOf(t, g.ID)["load"].Status.Rendered["expr"], "0.7")
	remove()
	w.policy(t, own)
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, freeShop).is(t, http.StatusOK)
	require.Contains(t, w.policiesOf(t, g.ID), "load", "no descriptor names it any more")
	remove()
	w.operator.call(t, http.MethodDelete, "/jobmanager/groups/"+g.ID+"?stop=true", "").is(t, http.StatusOK) // not taken again
	var rows int
	require.NoError(t, w.DB.QueryRow(t.Context(), `select count(*) from policies`).Scan(&rows))
	require.Zero(t, rows, "nothing is left of a deleted application's policies")
}

// TestFollow_leavesAsleepWhatWasMadeSo: a policy that was created inactive stays so until a person activates it,
// whatever its application does.
func TestFollow_leavesAsleepWhatWasMadeSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _ := w.running(t, freeShop)
	p := decode[policy](t, w.operator.send(t, http.MethodPost, polman+"/policies/?do_not_activate=true", usage(g.ID)).is(t, 200))
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, "").is(t, http.StatusOK)
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/start/"+g.ID, "").is(t, http.StatusOK)
	require.Equal(t, "inactive", w.seePolicy(t, p.ID).Status.Phase)

	w.operator.call(t, http.MethodPost, polman+"/policies/"+p.ID+"/activate", "").is(t, http.StatusNoContent)
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, "").is(t, http.StatusOK)
	require.Equal(t, "inactive", w.seePolicy(t, p.ID).Status.Phase)
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/start/"+g.ID, "").is(t, http.StatusOK)
	require.Equal(t, "enforced", w.seePolicy(t, p.ID).Status.Phase, "from then on it is watched as others are")
}

// TestFollow_waitsForTheStart: a policy that a person activates or changes while the application is stopped takes
// effect at the next start.
func TestFollow_waitsForTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _, p := w.loaded(t, "none")
	tell := func(what string) {
		w.operator.call(t, http.MethodPost, polman+"/policies/"+p.ID+"/"+what, "").is(t, http.StatusNoContent)
	}
	tell("deactivate")
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, "").is(t, http.StatusOK)
	for range 2 {
		tell("activate")
		require.Equal(t, "inactive", w.seePolicy(t, p.ID).Status.Phase)
	}
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, strings.Replace(loadedShop("none"), "0.8", "0.7", 1)).is(t, http.StatusOK)
	require.EqualValues(t, 0.7, w.seePolicy(t, p.ID).Variables["threshold"], "as the descriptor has it")
	tell("variables/threshold/0.6")
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/start/"+g.ID, "").is(t, http.StatusOK)
	started := w.seePolicy(t, p.ID)
	require.Equal(t, "enforced", started.Status.Phase)
	require.EqualValues(t, 0.6, started.Variables["threshold"])
}

// TestFollow_comesBeforeWhoChangesAPolicy: if the event of a descriptor is late, the descriptor is still applied before
// a person's later change.
func TestFollow_comesBeforeWhoChangesAPolicy(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, w *world, p policy){
		"a variable": func(t *testing.T, w *world, p policy) {
			t.Helper()
			w.operator.call(t, http.MethodPost, polman+"/policies/"+p.ID+"/variables/threshold/0.6", "").is(t, http.StatusNoContent)
		},
		"all of it": func(t *testing.T, w *world, p policy) {
			t.Helper()
			next := decode[body](t, w.viewer.get(t, polman+"/policies/"+p.ID))
			next["variables"] = body{"threshold": 0.6}
			w.operator.send(t, http.MethodPut, polman+"/policies/"+p.ID, next).is(t, http.StatusOK)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g, _, p := w.loaded(t, "none")
			w.Broker.Fail(errors.New("the Broker is away"))
			w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, strings.Replace(loadedShop("none"), "0.8", "0.7", 1)).is(t, http.StatusOK)
			require.EqualValues(t, 0.8, w.seePolicy(t, p.ID).Variables["threshold"], "it has not been heard of yet")
			change(t, w, p)
			w.Broker.Fail(nil)
			_, err := w.DB.Exec(t.Context(), `update outbox set created_at = created_at - interval '1 h', tried_at = null`)
			require.NoError(t, err)
			require.NoError(t, w.Broker.TickOne(t.Context(), "outbox-sweep"))
			require.EqualValues(t, 0.6, w.seePolicy(t, p.ID).Variables["threshold"])
		})
	}
}

func TestLifecycleEvents_ofAnotherJobManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tell := func(event string, more body) []policy {
		sent := body{"app_instance": "demo-app-999", "event": event, "service": "job-manager"}
		for k, v := range more {
			sent[k] = v
		}
		return decode[[]policy](t, w.operator.send(t, http.MethodPost, polman+"/icos/app", sent).is(t, http.StatusOK))
	}
	created := body{
		"app_descriptor": watched,
		"callback":       body{"uri": "/jobmanager/policies/incompliance/create", "http_method": "POST", "extra_params": body{"k": "v"}},
	}
	for range 2 {
		made := tell("created", created)
		require.Len(t, made, 2)
		require.Equal(t, "inactive", made[0].Status.Phase)
	}
	for _, row := range []struct{ event, phase string }{{"started", "enforced"}, {"stopped", "inactive"}, {"started", "enforced"}} {
		told := tell(row.event, nil)
		require.Len(t, told, 2)
		for _, p := range told {
			require.Equal(t, row.phase, p.Status.Phase)
		}
	}
	require.Empty(t, tell("deleted", nil))
	require.Empty(t, tell("started", nil), "an application that nobody knows has no policies")
	fields := w.operator.send(t, http.MethodPost, polman+"/icos/app", body{"event": "moved"}).fields(t)
	require.ElementsMatch(t, []string{"app_instance", "service", "event"}, fields)
	fields = w.operator.send(t, http.MethodPost, polman+"/icos/", body{}).fields(t)
	require.ElementsMatch(t, []string{"app_instance", "service", "app_descriptor", "common_action"}, fields)
	asked := body{
		"app_descriptor": watched, "app_instance": uuid.NewString(), "service": "job-manager", "common_action": created["callback"],
	}
	made := decode[[]policy](t, w.operator.send(t, http.MethodPost, polman+"/icos/", asked).is(t, http.StatusOK))
	require.Len(t, made, 2)
	for _, p := range made {
		require.Equal(t, "enforced", p.Status.Phase)
	}
	bad := strings.Replace(watched, "app-host-cpu-usage-perc", "no-such", 1)
	asked["app_instance"], asked["app_descriptor"] = uuid.NewString(), bad
	require.Equal(t, []string{"policies[1].fromTemplate"}, w.operator.send(t, http.MethodPost, polman+"/icos/", asked).fields(t))
}

// TestFollow_leavesOutWhatIsFaulty: the other policies of the descriptor are watched anyway, and history has the
// reason.
func TestFollow_leavesOutWhatIsFaulty(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _ := w.running(t, watched+`  - {name: nowhere, apply-to: db, security: low}
  - {name: tenants, type: custom, remediation: none, spec: {expr: "container_cpu_usage > 0.8"}}
`)
	made := w.policiesOf(t, g.ID)
	require.Len(t, made, 3)
	require.Equal(t, "enforced", made["0"].Status.Phase)
	require.Equal(t, "enforced", made["load"].Status.Phase)
	require.Equal(t, "unknown", made["tenants"].Status.Phase, "it reads what may be others'")
	require.Contains(t, made["tenants"].happened(), "renderedError")
	told := w.messages(t, g.ID, "policy.refused")
	require.Len(t, told, 2)
	require.Contains(t, strings.Join(told, "\n"), `"db" is not a component`)
	require.Contains(t, strings.Join(told, "\n"), `needs the role "admin"`)

	conditions := func() []body {
		return decode[struct{ Conditions []body }](t, w.viewer.get(t, "/jobmanager/groups/"+g.ID)).Conditions
	}
	seen := conditions()
	require.Len(t, seen, 1)
	require.Equal(t, "Watched", seen[0]["type"])
	require.Equal(t, "False", seen[0]["status"])
	require.Contains(t, seen[0]["message"], `policies[2].apply-to: "db" is not a component`)
	require.Contains(t, seen[0]["message"], `tenants: `)
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, watched).is(t, http.StatusOK)
	require.Empty(t, conditions(), "all that is left is watched")
}
