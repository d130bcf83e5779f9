package registry_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
)

// The two published policies of the policy manager (shared/docs/contracts.md §3.3), as a client sends and as it reads them.
const (
	created = `{
  "name": "demo-app-container-cpu-utilization",
  "subject": {"appName": "demo-app", "appComponent": "backend", "appInstance": "9997ccb4-3dd9-4f5c-aac9-d69160c373c6"},
  "spec": {"expr": "container_cpu_utilization_ratio{ { {subject_label_selector} } }", "violatedIf": "> 0.5"},
  "properties": {"pendingInterval": "30s"},
  "action": {"url": "https://receiver.example/", "httpMethod": "POST"}
}`
	host = `{
  "name": "cpu_usage-for-agent",
  "subject": {"type": "host", "hostId": "57e17cac94714bf6976f1e071d64d586", "agentId": "icos-agent-1"},
  "spec": {"description": "", "type": "telemetryQuery", "expr": "avg(m) > 0.5", "violatedIf": null, "thresholds": null},
  "action": {"type": "webhook", "url": "https://receiver.example/", "httpMethod": "POST", "extraParams": {},
    "includeAccessToken": false},
  "variables": {"maxCpu": "0.5"},
  "properties": {},
  "status": {"renderedSpec": null, "measurementBackends": {}, "events": [], "phase": "unknown"}
}`
)

func decode(t *testing.T, text string) registry.Policy {
	t.Helper()
	var p registry.Policy
	require.NoError(t, json.Unmarshal([]byte(text), &p))
	p.Defaults()
	return p
}

func TestPolicy_isReadAsTheOpenAPIExampleHasIt(t *testing.T) {
	t.Parallel()
	p := decode(t, created)
	require.NoError(t, p.Check())
	require.Equal(t, registry.AppSubject, p.Subject.Type)
	require.Equal(t, "backend", p.Subject.AppComponent)
	require.Equal(t, registry.TelemetrySpec, p.Spec.Type)
	require.Equal(t, "> 0.5", p.Spec.ViolatedIf)
	require.Equal(t, "30s", p.Properties.PendingInterval)
	require.Equal(t, registry.ActionWebhook, p.Action.Type)
}

func TestPolicy_isWrittenAsItIsRead(t *testing.T) {
	t.Parallel()
	p := decode(t, host)
	require.NoError(t, p.Check())
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	require.JSONEq(t, host, string(raw))
}

func TestPolicy_everyUnionGoesThereAndBack(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"name":"a","subject":{"type":"custom","zone":"north"},"spec":{"description":"","type":"template",` +
			`"templateName":"app-sca-score"},"action":{"type":"webhook","url":"","httpMethod":"GET","extraParams":{"a":"b"},` +
			`"includeAccessToken":true},"variables":{"i":1,"f":0.25,"t":"x"},"properties":{"oneoff":true,"interval":"15s"},` +
			`"status":{"renderedSpec":{"description":"","type":"telemetryQuery","expr":"m > 1","violatedIf":"> 1",` +
			`"thresholds":{"low":1}},"measurementBackends":{"prom-1":{"service":"prometheus","url":"u","rule_file":"f"}},` +
			`"events":[{"type":"renderedError","timestamp":"2026-01-02T03:04:05Z","details":{"n":1}}],"phase":"violated"}}`,
		`{"name":"a","subject":{"type":"app","appName":"n","appInstance":"i","appComponent":"*"},"spec":{"description":"d",` +
			`"type":"constraints","constraints":{"a":"b"}},"action":{"type":"webhook","url":"","httpMethod":"PUT",` +
			`"extraParams":{},"includeAccessToken":false},"variables":{},"properties":{},"status":{"renderedSpec":null,` +
			`"measurementBackends":{},"events":[],"phase":"inactive"}}`,
	} {
		p := decode(t, text)
		require.NoError(t, p.Check())
		raw, err := json.Marshal(p)
		require.NoError(t, err)
		require.JSONEq(t, text, string(raw))
	}
}

func TestPolicy_readsBothSpellingsOfARenderingError(t *testing.T) {
	t.Parallel()
	var e registry.Event
	require.NoError(t, json.Unmarshal([]byte(`{"type":"renderingError"}`), &e))
	require.Equal(t, registry.EventRenderingError, e.Type)
}

func TestPolicy_faults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		replace [2]string
		want    string
	}{
		"no name":               {[2]string{`"demo-app-container-cpu-utilization"`, `""`}, "name: is required"},
		"a name with a newline": {[2]string{`demo-app-container`, `a\nb`}, "name: must be a text"},
		"no component":          {[2]string{`"backend"`, `""`}, "subject.appComponent: is required"},
		"a broken wildcard":     {[2]string{`"backend"`, `"/(/"`}, "subject.appComponent: is not a regular expression"},
		"an unknown subject": {
			[2]string{`{"appName"`, `{"type":"planet","appName"`}, "subject.type: must be app, host or custom",
		},
		"no expression": {
			[2]string{`"container_cpu_utilization_ratio{ { {subject_label_selector} } }"`, `" "`}, "spec.expr: is required",
		},
		"an unknown spec":       {[2]string{`{"expr"`, `{"type":"wish","expr"`}, "spec.type: must be template"},
		"a method nobody calls": {[2]string{`"POST"`, `"TRACE"`}, "action.httpMethod: must be one of GET, POST, PUT, DELETE"},
		"a URL of another kind": {
			[2]string{`https://receiver.example/`, `file:///etc/passwd`}, "action.url: must be an absolute http",
		},
		"a URL with a password": {[2]string{`receiver.example`, `a:b@receiver.example`}, "action.url: must not carry a user"},
		"a pending interval":    {[2]string{`"30s"`, `"soon"`}, "properties.pendingInterval: \"soon\" is not a duration"},
		"a variable of another kind": {
			[2]string{`"properties"`, `"variables":{"a":[1]},"properties"`}, "variables.a: must be a number or a text",
		},
		"a variable that shadows": {
			[2]string{`"properties"`, `"variables":{"appInstance":"i2"},"properties"`},
			"variables.appInstance: is the name of a predefined placeholder",
		},
		"a subject of another kind": {[2]string{`"backend"`, `7`}, "subject.appComponent: must be a text"},
		"a template of no name": {
			[2]string{`{"expr"`, `{"templateName":"no","expr"`}, `spec.templateName: "no" is not a template`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(created, test.replace[0], test.replace[1], 1)
			require.NotEqual(t, created, text)
			var p registry.Policy
			err := json.Unmarshal([]byte(text), &p)
			if err == nil {
				p.Defaults()
				err = p.Check()
			}
			require.ErrorContains(t, err, test.want)
			require.Equal(t, problem.Invalid, problem.KindOf(err))
		})
	}
}

func TestVariables_areCastAsInTheURL(t *testing.T) {
	t.Parallel()
	v := registry.Variables{}
	for name, text := range map[string]string{"i": "7", "f": "0.5", "t": "5m", "zero": "0", "empty": "", "inf": "Inf"} {
		require.NoError(t, v.Set(name, text))
	}
	require.Equal(t, registry.Variables{
		"i": int64(7), "f": 0.5, "t": "5m", "zero": int64(0), "empty": "", "inf": "Inf",
	}, v)
	require.Error(t, v.Set("a b", "x"))
	require.Error(t, v.Set("subject_label_list", "x"))
}

func TestCallback_becomesTheAction(t *testing.T) {
	t.Parallel()
	var c registry.Callback
	require.NoError(t, json.Unmarshal([]byte(`{"uri": "/jobmanager/policies/incompliance/create", "http_method": "post",
		"extra_params": {"customParam": "test-1", "remediation": "none"}}`), &c))
	p := registry.Policy{Action: registry.Action{ExtraParams: map[string]string{"remediation": "reallocate"}}}
	c.Apply(&p, "http://jobmanager:8082/")
	require.Equal(t, registry.Action{
		Type: "webhook", URL: "http://jobmanager:8082/jobmanager/policies/incompliance/create", HTTPMethod: "POST",
		ExtraParams: map[string]string{"customParam": "test-1", "remediation": "reallocate"},
	}, p.Action)
}

func TestRuleGroup(t *testing.T) {
	t.Parallel()
	p := decode(t, host)
	_, err := p.RuleGroup()
	require.Equal(t, problem.Conflict, problem.KindOf(err), "it has not been rendered")
	p.ID = "65f5a3ced6ea3f831414a387"
	p.Status.RenderedSpec = &p.Spec
	group, err := p.RuleGroup()
	require.NoError(t, err)
	raw, err := json.Marshal(registry.RulesRequest{Data: registry.RuleFile{Groups: []registry.RuleGroup{group}}})
	require.NoError(t, err)
	require.JSONEq(t, `{"data": {"groups": [{"name": "cpu_usage-for-agent", "rules": [{
		"alert": "cpu_usage-for-agent:rule-0", "expr": "avg(m) > 0.5", "for": "0", "labels": {}, "annotations": {
		"plm_id": "65f5a3ced6ea3f831414a387", "plm_expr_value": "{{ $value }}", "plm_measurement_backend": "prom-1"}}]}]}}`,
		string(raw))
	p.Properties = registry.Properties{PendingInterval: "5m", Interval: "15s"}
	group, err = p.RuleGroup()
	require.NoError(t, err)
	require.Equal(t, "5m", group.Rules[0].For)
	require.Equal(t, "15s", group.Interval)
}

func at(seconds int) time.Time { return time.Unix(int64(1_700_000_000+seconds), 0) }
