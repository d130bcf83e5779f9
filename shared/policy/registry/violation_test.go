package registry_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
)

// compss is the policy of the published violation (shared/docs/contracts.md §3.9).
func compss() registry.Policy {
	return registry.Policy{
		ID: "fd745e25-0ca3-418b-b310-257693e3f3bf", Name: "compss-low-performance-20",
		Subject: registry.Subject{
			Type: registry.AppSubject, AppName: "compss-example-app", AppInstance: "compss-example-app-002", AppComponent: "*",
		},
		Status: registry.Status{RenderedSpec: &registry.Spec{
			Type: registry.TelemetrySpec, ViolatedIf: "> 120", Thresholds: map[string]float64{"warning": 200, "critical": 500},
		}},
	}
}

func annotations(value string) map[string]string {
	return map[string]string{"plm_expr_value": value, "plm_measurement_backend": "prom-1"}
}

func TestViolation_isThePublishedPayload(t *testing.T) {
	t.Parallel()
	p := compss()
	v, err := p.Violation("0c2f0381-b4ef-40b6-9ff0-b66ebf0ddeff", map[string]string{
		"icos_app_name": "compss-example-app", "icos_app_instance": "compss-example-app-002",
		"icos_app_component": "component1", "remediation": "scale-up", "another-param": "custom-value",
	}, annotations("235.365"))
	require.NoError(t, err)
	body, err := v.Body(map[string]string{"remediation": "scale-up", "id": "forged", "subject": "forged"})
	require.NoError(t, err)
	raw, err := json.Marshal(body)
	require.NoError(t, err)
	require.JSONEq(t, `{
  "id": "0c2f0381-b4ef-40b6-9ff0-b66ebf0ddeff",
  "currentValue": "235.365",
  "threshold": "warning",
  "policyName": "compss-low-performance-20",
  "policyId": "fd745e25-0ca3-418b-b310-257693e3f3bf",
  "measurementBackend": "prom-1",
  "subject": {
    "type": "app", "appName": "compss-example-app", "appInstance": "compss-example-app-002",
    "appComponent": "component1"
  },
  "extraLabels": {"remediation": "scale-up", "another-param": "custom-value"},
  "remediation": "scale-up"
}`, string(raw))
	require.Equal(t, map[string]string{
		"id": "0c2f0381-b4ef-40b6-9ff0-b66ebf0ddeff", "currentValue": "235.365", "threshold": "warning",
		"policyName": "compss-low-performance-20", "policyId": "fd745e25-0ca3-418b-b310-257693e3f3bf",
		"measurementBackend": "prom-1", "remediation": "scale-up",
		"subject.type": "app", "subject.appName": "compss-example-app", "subject.appInstance": "compss-example-app-002",
		"subject.appComponent": "component1", "extraLabels.remediation": "scale-up",
		"extraLabels.another-param": "custom-value",
	}, registry.Flatten(body))
	require.Equal(t, "*", p.Subject.AppComponent, "the policy is not changed")
}

func TestViolation_threshold(t *testing.T) {
	t.Parallel()
	name := func(s string) *string { return &s }
	two := map[string]float64{"warning": 200, "critical": 500}
	for sentence, test := range map[string]struct {
		condition, value string
		thresholds       map[string]float64
		want             *string
	}{
		"the policy names none":                    {"> 120", "150", nil, nil},
		"beyond none of them":                      {"> 120", "150", two, name("__out_of_range__")},
		"beyond the first":                         {"> 120", "235", two, name("warning")},
		"beyond both":                              {"> 120", "501", two, name("critical")},
		"at it is not beyond it":                   {"> 120", "500", two, name("warning")},
		"at it is enough":                          {">= 120", "500", two, name("critical")},
		"downwards the lowest is the worst":        {"< 600", "100", two, name("warning")},
		"downwards, beyond the first":              {"< 600", "300", two, name("critical")},
		"downwards, at it":                         {"<= 600", "200", two, name("warning")},
		"equal":                                    {"== 200", "200", two, name("warning")},
		"not equal":                                {"!= 0", "200", two, name("critical")},
		"no comparison to tell the direction from": {"", "900", two, name("__out_of_range__")},
		"no number":                                {"> 120", "many", two, name("__out_of_range__")},
		"not a number":                             {"> 120", "NaN", two, name("__out_of_range__")},
		"infinite":                                 {"> 120", "+Inf", two, name("critical")},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			p := compss()
			p.Status.RenderedSpec.ViolatedIf, p.Status.RenderedSpec.Thresholds = test.condition, test.thresholds
			v, err := p.Violation("x", map[string]string{"icos_app_component": "c"}, annotations(test.value))
			require.NoError(t, err)
			require.Equal(t, test.want, v.Threshold)
		})
	}
}

func TestViolation_subject(t *testing.T) {
	t.Parallel()
	for sentence, test := range map[string]struct {
		meant  registry.Subject
		labels map[string]string
		want   registry.Subject
		fault  string
	}{
		"a plain name stands without its label": {
			meant:  registry.Subject{Type: registry.AppSubject, AppName: "a", AppInstance: "i", AppComponent: "c"},
			labels: map[string]string{},
			want:   registry.Subject{Type: registry.AppSubject, AppName: "a", AppInstance: "i", AppComponent: "c"},
		},
		"a wildcard needs its label": {
			meant:  registry.Subject{Type: registry.AppSubject, AppName: "a", AppInstance: "i", AppComponent: "*"},
			labels: map[string]string{"icos_app_name": "a"}, fault: "the alert has no label icos_app_component",
		},
		"some of the components": {
			meant:  registry.Subject{Type: registry.AppSubject, AppName: "a", AppInstance: "i", AppComponent: "/c|d/"},
			labels: map[string]string{"icos_app_component": "d"},
			want:   registry.Subject{Type: registry.AppSubject, AppName: "a", AppInstance: "i", AppComponent: "d"},
		},
		"another component": {
			meant:  registry.Subject{Type: registry.AppSubject, AppName: "a", AppInstance: "i", AppComponent: "/c|d/"},
			labels: map[string]string{"icos_app_component": "dd"}, fault: "the alert's label icos_app_component is dd",
		},
		"another tenant's application, set by the expression": {
			meant:  registry.Subject{Type: registry.AppSubject, AppName: "a", AppInstance: "i", AppComponent: "c"},
			labels: map[string]string{"icos_app_instance": "theirs"}, fault: "the alert's label icos_app_instance is theirs",
		},
		"the label that tells alike policies apart is none of the subject's": {
			meant:  registry.Subject{Type: registry.HostSubject, HostID: "h", AgentID: "a"},
			labels: map[string]string{"plm_id": "65f5a3ced6ea3f831414a387"},
			want:   registry.Subject{Type: registry.HostSubject, HostID: "h", AgentID: "a"},
		},
		"a host": {
			meant:  registry.Subject{Type: registry.HostSubject, HostID: "*", AgentID: "a"},
			labels: map[string]string{"icos_host_id": "h"},
			want:   registry.Subject{Type: registry.HostSubject, HostID: "h", AgentID: "a"},
		},
		"a custom subject": {
			meant:  registry.Subject{Type: registry.CustomSubject, Custom: map[string]string{"zone": "*"}},
			labels: map[string]string{"zone": "north"},
			want:   registry.Subject{Type: registry.CustomSubject, Custom: map[string]string{"zone": "north"}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			p := registry.Policy{Subject: test.meant}
			v, err := p.Violation("x", test.labels, nil)
			if test.fault != "" {
				require.ErrorContains(t, err, test.fault)
				require.Equal(t, problem.Invalid, problem.KindOf(err))
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, v.Subject)
			require.Empty(t, v.ExtraLabels)
			require.Equal(t, "prom-1", v.MeasurementBackend)
		})
	}
}
