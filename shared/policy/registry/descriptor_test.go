package registry_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
)

var update = flag.Bool("update", false, "write the golden files anew")

const instance = "2104db48-e612-4b55-8bbd-76b4319521f2"

// TestFromDescriptor_publishedDescriptors compares the results for the published descriptors with golden files.
func TestFromDescriptor_publishedDescriptors(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"app_descriptor_2", "app_descriptor_all", "app_descriptor_compss_1", "app_descriptor_compss_2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := os.ReadFile("../../../test/contracts/descriptors/dynamic-policy-manager/" + name + ".yaml")
			require.NoError(t, err)
			app, err := descriptor.ParseHeader(doc, nil)
			require.NoError(t, err)
			policies, err := registry.FromDescriptor(app, instance, app.Name)
			require.NoError(t, err)
			announced(t, app, policies)
			got, err := json.MarshalIndent(policies, "", "  ")
			require.NoError(t, err)
			golden := filepath.Join("testdata", name+".golden.json")
			if *update {
				require.NoError(t, os.WriteFile(golden, append(got, '\n'), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got)+"\n")
			again, err := registry.FromDescriptor(app, instance, app.Name)
			require.NoError(t, err)
			require.Equal(t, policies, again, "the same descriptor gives the same policies, ids and all")
		})
	}
}

const head = `name: app
components:
  - name: web
    type: kubernetes
    manifests: [{name: m}]
%COMPONENT%
  - name: db
    type: kubernetes
    manifests: [{name: m}]
%TOP%
`

func from(t *testing.T, component, top string) ([]registry.Policy, error) {
	t.Helper()
	indent := func(text, by string) string {
		if text == "" {
			return ""
		}
		return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by)
	}
	doc := strings.NewReplacer("%COMPONENT%", indent(component, "    "), "%TOP%", indent(top, "")).Replace(head)
	app, err := descriptor.ParseHeader([]byte(doc), nil)
	require.NoError(t, err, doc)
	policies, err := registry.FromDescriptor(app, "i1", "app")
	announced(t, app, policies)
	return policies, err
}

// announced asserts that a descriptor with policies is Watched: only then do its events wake the function that follows
// it.
func announced(t *testing.T, app *appmodel.Application, policies []registry.Policy) {
	t.Helper()
	require.True(t, app.Watched() || len(policies) == 0, "the descriptor gives %d policies and is not Watched", len(policies))
}

// line is a policy in short: name, component, template or expression, variables, remediation, pending interval.
func line(p *registry.Policy) string {
	variables, _ := json.Marshal(p.Variables)
	return strings.TrimSpace(strings.Join([]string{
		p.Name, p.Subject.AppComponent, p.Spec.TemplateName + p.Spec.Expr, string(variables), p.Action.Remediation(),
		p.Properties.PendingInterval,
	}, " "))
}

func TestFromDescriptor(t *testing.T) {
	t.Parallel()
	for sentence, test := range map[string]struct {
		component, top string
		want           []string
	}{
		"security in both forms, on a component and on all": {
			component: "policies: [{security: high}]",
			top:       "policies: [{type: security, level: medium}, {type: security, threshold: 33, remediation: none}]",
			want: []string{
				`app-i1-0 * app-sca-score {"threshold":50} reallocate`,
				`app-i1-1 * app-sca-score {"threshold":33} none`,
				`app-i1-2 web app-sca-score {"threshold":80} reallocate`,
			},
		},
		"node usage gives one policy for each limit, without the application's own share": {
			component: "policies: [{name: busy, type: node-resource-usage, cpu_threshold_perc: 0.8, " +
				"memory_threshold_perc: 0.6, memory_threshold: 200Mi}]",
			want: []string{
				`app-i1-busy-cpu web app-host-cpu-usage-perc-excl {"threshold":0.8} reallocate`,
				`app-i1-busy-memory web app-host-memory-usage-perc-excl {"threshold":0.6} reallocate`,
				`app-i1-busy-memory-free web app-host-memory-avail-bytes-excl {"threshold":209715200} reallocate`,
			},
		},
		"node usage with the application's own share": {
			top: "policies: [{type: node-resource-usage, cpu_threshold_perc: 0.8, memory_threshold: 1Ki, " +
				"exclude_app_resources: false}]",
			want: []string{
				`app-i1-0 * app-host-cpu-usage-perc {"threshold":0.8} reallocate`,
				`app-i1-1 * app-host-memory-avail-bytes {"threshold":1024} reallocate`,
			},
		},
		"of a memory threshold and a requirement the larger counts": {
			component: "requirements: {memory: 1Gi}\npolicies: [{type: node-resource-usage, memory_threshold: 1Mi}]",
			want:      []string{`app-i1-0 web app-host-memory-avail-bytes-excl {"threshold":1073741824} reallocate`},
		},
		"devices imply that they stay available": {
			component: "requirements: {devices: [squat.ai/video, icos.eu/gps]}",
			want: []string{
				`app-i1-0 web device-available {"device":"squat\\.ai/video"} reallocate`,
				`app-i1-1 web device-available {"device":"icos\\.eu/gps"} reallocate`,
			},
		},
		"lost telemetry, short, long and by default": {
			component: "policies: [{redeployOnLostTelemetry: 15m}, {type: redeployOnLostTelemetry, timeout: 6h}, " +
				"{type: redeployOnLostTelemetry}, {redeployOnLostTelemetry: 15s}]",
			want: []string{
				`app-i1-0 web redeploy-on-lost-telemetry {"timeout":"15m"} reallocate`,
				`app-i1-1 web redeploy-on-lost-telemetry {"lookback":"12h","timeout":"6h"} reallocate`,
				`app-i1-2 web redeploy-on-lost-telemetry {"timeout":"5m"} reallocate`,
				`app-i1-3 web redeploy-on-lost-telemetry {"timeout":"15s"} reallocate`,
			},
		},
		"scheduler kinds and unknown ones give none": {
			top: "policies: [{type: scheduler, energy: 1}, {type: user-preference, security: 1}, {type: weather}]",
		},
		"apply-to": {
			top: "policies: [{security: low, apply-to: db}, {security: low, apply-to: [web, db]}, " +
				"{security: low, apply-to: '*'}]",
			want: []string{
				`app-i1-0 db app-sca-score {"threshold":0} reallocate`,
				`app-i1-1 /db|web/ app-sca-score {"threshold":0} reallocate`,
				`app-i1-2 * app-sca-score {"threshold":0} reallocate`,
			},
		},
		"custom by template and by expression": {
			component: "policies: [{name: slow, type: custom, fromTemplate: app-security-events, remediation: secure, " +
				"variables: {maxEvents: 3, other: x}, properties: {pendingInterval: 90s}}, " +
				"{type: custom, spec: {expr: 'm{ {{subject_label_selector}} }', violatedIf: '> {{a}}'}, remediation: scale-up, " +
				"variables: {a: 1.5, b: true}}]",
			want: []string{
				`app-i1-slow web app-security-events {"maxEvents":3,"other":"x"} secure 1m30s`,
				`app-i1-1 web m{ {{subject_label_selector}} } {"a":1.5,"b":"true"} scale-up`,
			},
		},
		"an expression may go without a remediation": {
			top:  "policies: [{type: custom, spec: {expr: m}}]",
			want: []string{`app-i1-0 * m {} none`},
		},
		"a name that is taken gets a number": {
			component: "policies: [{name: a, security: low}]",
			top:       "policies: [{name: a, security: low}, {name: a, security: high}]",
			want: []string{
				`app-i1-a * app-sca-score {"threshold":0} reallocate`, `app-i1-a-2 * app-sca-score {"threshold":80} reallocate`,
				`app-i1-a-3 web app-sca-score {"threshold":0} reallocate`,
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			policies, err := from(t, test.component, test.top)
			require.NoError(t, err)
			var got []string
			ids := map[string]bool{}
			for i := range policies {
				got = append(got, line(&policies[i]))
				ids[policies[i].ID] = true
			}
			require.Equal(t, test.want, got)
			require.Len(t, ids, len(policies))
		})
	}
}

func TestFromDescriptor_constraintsAndProperties(t *testing.T) {
	t.Parallel()
	policies, err := from(t, "", "policies: [{type: custom, remediation: none, "+
		"spec: {constraints: {zone: north, level: 3}}, properties: {oneoff: true, interval: 30s}}]")
	require.NoError(t, err)
	require.Equal(t, registry.ConstraintsSpec, policies[0].Spec.Type)
	require.Equal(t, map[string]string{"zone": "north", "level": "3"}, policies[0].Spec.Constraints)
	require.Equal(t, registry.Properties{Oneoff: true, Interval: "30s"}, policies[0].Properties)
}

func TestFromDescriptor_faults(t *testing.T) {
	t.Parallel()
	for sentence, test := range map[string]struct{ component, top, want string }{
		"a component that is not there": {
			top:  "policies: [{security: low}, {security: low, apply-to: [web, cache]}]",
			want: `policies[1].apply-to: "cache" is not a component of the application`,
		},
		"a template that is not there": {
			component: "policies: [{type: custom, fromTemplate: magic, remediation: none}]",
			want:      `components[0].policies[0].fromTemplate: "magic" is not a template: app-host-cpu-usage, app-host-cpu`,
		},
		"a variable that the template needs": {
			component: "policies: [{type: custom, fromTemplate: app-sca-score, remediation: none}]",
			want:      `components[0].policies[0].variables.threshold: is required by template app-sca-score`,
		},
		"a variable of another kind": {
			top:  "policies: [{type: custom, fromTemplate: app-sca-score, remediation: none, variables: {threshold: high}}]",
			want: `policies[0].variables.threshold: must be a number`,
		},
		"a template without a remediation": {
			top:  "policies: [{type: custom, fromTemplate: app-sca-score, variables: {threshold: 5}}]",
			want: `policies[0].remediation: is required with fromTemplate`,
		},
		"a variable that shadows the subject": {
			top:  "policies: [{type: custom, spec: {expr: m}, variables: {appInstance: theirs}}]",
			want: `policies[0].variables.appInstance: is the name of a predefined placeholder`,
		},
		"a oneoff that is no truth value": {
			top:  "policies: [{security: low, properties: {oneoff: maybe}}]",
			want: `policies[0].properties.oneoff: must be true or false`,
		},
		"all of them at once": {
			component: "policies: [{type: custom, fromTemplate: magic}]", top: "policies: [{security: low, apply-to: cache}]",
			want: `policies[0].apply-to: "cache" is not a component of the application; components[0].policies[0].remediation`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			_, err := from(t, test.component, test.top)
			require.ErrorContains(t, err, test.want)
			require.Equal(t, problem.Invalid, problem.KindOf(err))
		})
	}
}
