package render_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/render"
	"github.com/littoral-project/littoral/shared/policy/template"
	"github.com/littoral-project/littoral/shared/problem"
)

func web() registry.Subject {
	return registry.Subject{Type: registry.AppSubject, AppName: "app", AppInstance: "i1", AppComponent: "web"}
}

func with(change func(*registry.Subject)) registry.Subject {
	s := web()
	change(&s)
	return s
}

const ours = `icos_app_component="web",icos_app_instance="i1",icos_app_name="app"`

func TestQuery(t *testing.T) {
	t.Parallel()
	type vars = map[string]any
	for name, test := range map[string]struct {
		expr, violatedIf string
		variables        vars
		subject          registry.Subject
		want, condition  string
		fault            string
	}{
		"a number, a duration, texts and labels are literals": {
			expr: `sum by ({{l}}, z) (rate(m{a="{{t}}", b=~"{{p}}"}[{{d}}] offset -{{d}})) > -{{n}}`,
			variables: vars{
				"l": "x , y", "t": `q"}) or up`, "p": "a|b", "d": "1h30m", "n": "0.5",
			},
			want:      `sum by (x, y, z) (rate(m{a="q\"}) or up",b=~"a|b"}[1h30m] offset -1h30m)) > (-0.5)`,
			condition: "> -0.5",
		},
		"the subject touches the braces of the selector": {
			expr: `m{{{subject_label_selector}}} > 1`, want: `m{` + ours + `} > 1`, condition: "> 1",
		},
		"the braces of a placeholder stand apart, as in the published example": {
			expr: `m{ { {subject_label_selector} } }`, violatedIf: ">= 0.5",
			want: `m{` + ours + `} >= 0.5`, condition: ">= 0.5",
		},
		"a selector has matchers of its own before and after": {
			expr: `m{a="b", {{subject_label_selector}}, c!="d"} == 1`,
			want: `m{a="b",c!="d",` + ours + `} == 1`, condition: "== 1",
		},
		"any component, and some": {
			expr: `m{{{subject_label_selector}}} != 1 or on ({{subject_label_list}}) n{{{subject_label_selector}}}`,
			subject: with(func(s *registry.Subject) {
				s.AppComponent, s.AppName = "*", "/a|b/"
			}),
			want: `m{icos_app_component=~".+",icos_app_instance="i1",icos_app_name=~"a|b"} != 1 ` +
				`or on (icos_app_component, icos_app_instance, icos_app_name) ` +
				`n{icos_app_component=~".+",icos_app_instance="i1",icos_app_name=~"a|b"}`,
		},
		"a field of the subject is what it means in the selector": {
			expr:    `m{a="{{appComponent}}", b!="{{appComponent}}", c=~"{{appName}}", d=~"x-{{appName}}-{{appComponent}}"} > 0`,
			subject: with(func(s *registry.Subject) { s.AppComponent, s.AppName = "/a|b/", "a.b" }),
			want:    `m{a=~"a|b",b!~"a|b",c=~"a\\.b",d=~"x-a\\.b-(?:a|b)"} > 0`, condition: "> 0",
		},
		"a pattern inside a pattern keeps to itself": {
			expr: `m{a=~"x{{p}}y"} > 0`, variables: vars{"p": "a|b"}, want: `m{a=~"x(?:a|b)y"} > 0`, condition: "> 0",
		},
		"a value without quotes is the whole text": {
			expr: `m{a={{t}}} > 0`, variables: vars{"t": `x"y`}, want: `m{a="x\"y"} > 0`, condition: "> 0",
		},
		"a value that looks like a placeholder is text": {
			expr: `m{a="{{t}}"} > 0`, variables: vars{"t": "{{u}}", "u": "no"}, want: `m{a="{{u}}"} > 0`, condition: "> 0",
		},
		"a value that looks like a sentinel is text": {
			expr: `m{a="{{t}}", b="{{u}}"} > 0`, variables: vars{"t": "zzhole0x1z", "u": "no"},
			want: `m{a="zzhole0x1z",b="no"} > 0`, condition: "> 0",
		},
		"newlines, quotes and unicode": {
			expr: "m{a=\"{{t}}\"} > 0", variables: vars{"t": "a\n'`\\\u00ad\u2028é\x00"},
			want: `m{a="a\n'` + "`" + `\\\u00ad\u2028é\x00"} > 0`, condition: "> 0",
		},
		"a comment does not swallow the condition": {
			expr: "m{{{subject_label_selector}}} # {{nothing}} > 3", violatedIf: "< 5",
			want: `m{` + ours + `} < 5`, condition: "< 5",
		},
		"the condition holds of the whole expression": {
			expr: `m or n`, violatedIf: "<= {{limit}}", variables: vars{"limit": int64(5)},
			want: `(m or n) <= 5`, condition: "<= 5",
		},
		"the condition compares with a series": {
			expr: `m`, violatedIf: `> on (x) group_left () n{{{subject_label_selector}}}`,
			want: `m > on (x) group_left () n{` + ours + `}`,
		},
		"a negative base keeps its sign": {
			expr: `{{n}} ^ 2 * m`, variables: vars{"n": int64(-3)}, want: `(-3) ^ 2 * m`,
		},
		"a duration may stand for its seconds": {
			expr: `m > {{d}}`, variables: vars{"d": "5m"}, want: `m > 300`, condition: "> 300",
		},
		"braces in a string are text": {
			expr: `m{a=~"x{2}{{{n}}}"} > 0`, variables: vars{"n": int64(3)}, want: `m{a=~"x{2}{(?:3)}"} > 0`, condition: "> 0",
		},

		"not a number": {expr: `m > {{n}}`, variables: vars{"n": "1 or up"}, fault: "variables.n: must be a number"},
		"infinite":     {expr: `m > {{n}}`, variables: vars{"n": "Inf"}, fault: "variables.n: must be a number"},
		"not a duration": {
			expr: `rate(m[{{d}}])`, variables: vars{"d": int64(5)}, fault: "variables.d: must be a duration",
		},
		"not labels": {
			expr: `sum by ({{l}}) (m)`, variables: vars{"l": "a) (up"}, fault: "variables.l: must be label names",
		},
		"not a pattern": {
			expr: `m{a=~"{{p}}"}`, variables: vars{"p": "("}, fault: "variables.p: is not a regular expression",
		},
		"not a pattern either": {
			expr: `m{a=~"({{p}})"}`, variables: vars{"p": "a)(b"}, fault: "variables.p: is not a regular",
		},
		"not UTF-8": {expr: `m{a="{{t}}"}`, variables: vars{"t": "\xff"}, fault: "variables.t: must be a text"},
		"too long": {
			expr: `m{a="{{t}}"}`, variables: vars{"t": strings.Repeat("x", 1025)}, fault: "variables.t: must be",
		},
		"a truth value":     {expr: `m > {{n}}`, variables: vars{"n": true}, fault: "variables.n: must be a number"},
		"unknown":           {expr: `m > {{n}}`, fault: "variables.n: is not given"},
		"unknown in a text": {expr: `m{a="{{n}}"}`, fault: "variables.n: is not given"},
		"code":              {expr: `m{a="{{ 7 * 7 }}"}`, fault: "spec.expr: has a placeholder that is not of the form"},
		"a filter":          {expr: `m > {{ n | safe }}`, fault: "spec.expr: has a placeholder that is not of the form"},
		"a metric":          {expr: `{{m}}{a="b"}`, variables: vars{"m": "up"}, fault: "spec.expr: is no PromQL: "},
		"a function":        {expr: `{{f}}(m)`, variables: vars{"f": "rate"}, fault: "spec.expr: is no PromQL"},
		"a label name": {
			expr: `m{"{{l}}"="x"}`, variables: vars{"l": "a"}, fault: "spec.expr: has {{l}} where nothing can be put",
		},
		"an instant": {
			expr: `m @ {{t}}`, variables: vars{"t": int64(1)}, fault: "spec.expr: has {{t}} where nothing can be put",
		},
		"glued to a digit": {expr: `m > 1{{n}}`, variables: vars{"n": int64(1)}, fault: "spec.expr: is no PromQL"},
		"a variable among matchers": {
			expr: `m{ {{n}} }`, variables: vars{"n": "a"}, fault: "only {{subject_label_selector}} can stand",
		},
		"the subject as a number": {
			expr: `m > {{subject_label_selector}}`, fault: "stands among the matchers of a selector",
		},
		"the subject in a text": {
			expr: `m{a="{{subject_label_selector}}"}`, fault: "stands among the matchers of a selector",
		},
		"the list as a number": {expr: `m > {{subject_label_list}}`, fault: "it stands among label names"},
		"a sentinel of one's own": {
			expr: `m{a="{{t}}"} > {{n}} + 4503599634710530`, variables: vars{"t": "x", "n": int64(1)},
			fault: "spec.expr: has {{n}} where nothing can be put",
		},
		"two comparisons":           {expr: `m`, violatedIf: "> 5 > 3", fault: "spec.violatedIf: must be one comparison"},
		"a comparison and more":     {expr: `m`, violatedIf: "> 5 or up", fault: "spec.violatedIf: must be one comparison"},
		"no comparison":             {expr: `m`, violatedIf: "5", fault: "spec.violatedIf: is no PromQL"},
		"an operator":               {expr: `m`, violatedIf: "+ 5", fault: "spec.violatedIf: must be one comparison"},
		"a range as the comparison": {expr: `m`, violatedIf: "[5m] > 5", fault: "spec.violatedIf: is no PromQL"},
		"always violated":           {expr: `m`, violatedIf: "> bool 5", fault: "spec.violatedIf: must not have bool"},
		"a scalar":                  {expr: `time()`, fault: "spec.expr: gives a scalar"},
		"a scalar to compare":       {expr: `time()`, violatedIf: "> 5", fault: "spec.expr: gives a scalar"},
		"a range":                   {expr: `m[5m]`, fault: "spec.expr: gives a range vector"},
		"no string end":             {expr: `m{a="b`, fault: "spec.expr: has a string that does not end"},
		"nothing":                   {expr: ``, fault: "spec.expr: is no PromQL"},
		"an experimental function":  {expr: `info(m)`, fault: "spec.expr: is no PromQL"},
		"enormous": {
			expr: strings.Repeat("m+", 10_000) + "m", fault: "spec.expr: is longer than 16384 bytes",
		},
		"enormous when rendered": {
			expr: strings.Repeat(`m{a=~"{{t}}"} + `, 40) + "m", variables: vars{"t": strings.Repeat("x", 1000)},
			fault: "spec.expr: is longer than 16384 bytes when rendered",
		},
		"many parts":     {expr: strings.Repeat("1+", 5_000) + "m", fault: "spec.expr: is too large"},
		"many selectors": {expr: strings.Repeat("m+", 100) + "m", fault: "spec.expr: is too large"},
		"deep": {
			expr: strings.Repeat("(", 100) + "m" + strings.Repeat(")", 100), fault: "spec.expr: has more than 64 paren",
		},
		"deep by signs":          {expr: strings.Repeat("-", 16_000) + "m", fault: "spec.expr: is too large"},
		"far back":               {expr: `rate(m[32d])`, fault: "spec.expr: is too costly"},
		"far back by a variable": {expr: `rate(m[{{d}}])`, variables: vars{"d": "1y"}, fault: "spec.expr: is too costly"},
		"far back in sum":        {expr: `max_over_time(rate(m[20d])[20d:1d])`, fault: "spec.expr: is too costly"},
		"many steps": {
			expr: `max_over_time(max_over_time(m[1d:1m])[1d:1m])`, fault: "spec.expr: is too costly",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.subject.Type == "" {
				test.subject = web()
			}
			got, err := render.Query(test.expr, test.violatedIf, test.subject, test.variables)
			if test.fault != "" {
				require.ErrorContains(t, err, test.fault)
				require.Equal(t, problem.Invalid, problem.KindOf(err))
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, got.Expr)
			require.Equal(t, test.condition, got.Condition)
			// Rules are evaluated from a printed tree, so printing it again must change nothing.
			again, err := parser.NewParser(parser.Options{}).ParseExpr(got.Expr)
			require.NoError(t, err)
			require.Equal(t, got.Expr, again.String())
		})
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy registry.Policy
		fault  string
	}{
		"a template that is not there": {
			policy: registry.Policy{Spec: registry.Spec{Type: registry.TemplateSpec, TemplateName: "no"}},
			fault:  "spec.templateName: is not a template",
		},
		"a variable is missing": {
			policy: registry.Policy{Spec: registry.Spec{Type: registry.TemplateSpec, TemplateName: template.SCAScore}},
			fault:  "variables.threshold: is required by template app-sca-score",
		},
		"a share is not a percentage": {
			policy: registry.Policy{
				Spec:      registry.Spec{Type: registry.TemplateSpec, TemplateName: template.CPUUsage},
				Variables: registry.Variables{"threshold": int64(80)},
			},
			fault: "variables.threshold: must be within 0 and 1",
		},
		"an older name of a variable is named in the fault": {
			policy: registry.Policy{
				Spec:      registry.Spec{Type: registry.TemplateSpec, TemplateName: "app-host-cpu-usage"},
				Variables: registry.Variables{"maxCpu": "most"},
			},
			fault: "variables.maxCpu: must be a number",
		},
		"an application's template about a host": {
			policy: registry.Policy{
				Spec:    registry.Spec{Type: registry.TemplateSpec, TemplateName: template.SCAScore},
				Subject: registry.Subject{Type: registry.HostSubject, HostID: "h", AgentID: "a"},
			},
			fault: "subject.type: template app-sca-score is not for a subject of type host",
		},
		"every fault at once": {
			policy: registry.Policy{
				Spec:      registry.Spec{Type: registry.TemplateSpec, TemplateName: template.CompssUnderAllocation},
				Variables: registry.Variables{"thresholdTimeSeconds": "soon"},
			},
			fault: "variables.compssTask: is required by template compss-under-allocation: the signature of the COMPSs task; " +
				"variables.thresholdTimeSeconds: must be a number",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.policy.Subject.Type == "" {
				test.policy.Subject = web()
			}
			_, err := render.Policy(&test.policy, time.Minute)
			require.ErrorContains(t, err, test.fault)
			require.Equal(t, problem.Invalid, problem.KindOf(err))
		})
	}
}

func TestPolicy_namesThresholds(t *testing.T) {
	t.Parallel()
	p := registry.Policy{Subject: web(), Spec: registry.Spec{
		Type: registry.TelemetrySpec, Expr: "m{{{subject_label_selector}}}", ViolatedIf: "> {{warning}}",
		Thresholds: map[string]float64{"warning": 3, "critical": 5},
	}}
	spec, err := render.Policy(&p, time.Minute)
	require.NoError(t, err)
	require.Equal(t, "m{"+ours+"} > 3", spec.Expr)
	require.Equal(t, "> 3", spec.ViolatedIf)
	require.Equal(t, p.Spec.Thresholds, spec.Thresholds)
}

func TestPolicy_constraintsHaveNothingToRender(t *testing.T) {
	t.Parallel()
	p := registry.Policy{Spec: registry.Spec{Type: registry.ConstraintsSpec, Constraints: map[string]string{"a": "b"}}}
	spec, err := render.Policy(&p, time.Minute)
	require.NoError(t, err)
	require.Equal(t, p.Spec, spec)
}

func TestForeign(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		expr    string
		subject registry.Subject
		want    []string
	}{
		"nothing is selected":     {expr: `vector(1) > 0`},
		"the subject's own":       {expr: `m{` + ours + `} > 1`},
		"another component of it": {expr: `m{icos_app_instance="i1",icos_app_component="db"} > 1`},
		"a pattern of nothing else": {
			expr: `m{icos_app_instance=~"i1"} > 1`,
		},
		"nodes are nobody's": {
			expr: `node_mounted * on (icos_host_id) tlum_workload_info{` + ours + `}`,
		},
		"all applications": {
			expr: `container_cpu_usage > 0.8`, want: []string{"container_cpu_usage: has no matcher for icos_app_instance"},
		},
		"one of two": {
			expr: `m{` + ours + `} or n`, want: []string{"n: has no matcher for icos_app_instance"},
		},
		"another tenant's": {
			expr: `m{icos_app_instance="i2"}`,
			want: []string{`m{icos_app_instance="i2"}: lets series of other application instances through`},
		},
		"widened by a pattern": {
			expr: `m{icos_app_instance=~"i1|i2"}`,
			want: []string{`m{icos_app_instance=~"i1|i2"}: lets series of other application instances through`},
		},
		"widened by any": {
			expr: `m{icos_app_instance=~".+"}`,
			want: []string{`m{icos_app_instance=~".+"}: lets series of other application instances through`},
		},
		"widened by not": {
			expr: `m{icos_app_instance!="i2"}`,
			want: []string{`m{icos_app_instance!="i2"}: lets series of other application instances through`},
		},
		"without case": {
			expr: `m{icos_app_instance=~"(?i)i1"}`,
			want: []string{`m{icos_app_instance=~"(?i)i1"}: lets series of other application instances through`},
		},
		"a node's metric by pattern": {
			expr: `{__name__=~"node_mounted|secrets"}`,
			want: []string{`{__name__=~"node_mounted|secrets"}: has no matcher for icos_app_instance`},
		},
		"in a subquery, a range and a parameter": {
			expr: `topk(scalar(a), max_over_time(rate(b[5m])[1h:5m]))`,
			want: []string{"b: has no matcher for icos_app_instance", "a: has no matcher for icos_app_instance"},
		},
		"a subject of all instances owns nothing": {
			expr: `m{icos_app_instance=~".+"}`, subject: with(func(s *registry.Subject) { s.AppInstance = "*" }),
			want: []string{`m{icos_app_instance=~".+"}: lets series of other application instances through`},
		},
		"a host's subject owns no pods": {
			expr:    `kube_pod_info{icos_host_id="h"} and node_mounted{icos_host_id="h"}`,
			subject: registry.Subject{Type: registry.HostSubject, HostID: "h", AgentID: "a"},
			want:    []string{`kube_pod_info{icos_host_id="h"}: has no matcher for icos_app_instance`},
		},
		"braces in a label value are text": {expr: `m{icos_app_instance="i1",a="{{b}}"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.subject.Type == "" {
				test.subject = web()
			}
			foreign, err := render.Foreign(test.expr, test.subject)
			require.NoError(t, err)
			var got []string
			for _, f := range foreign {
				got = append(got, f.Text+": "+f.Reason)
			}
			require.Equal(t, test.want, got)
		})
	}
}

func TestForeign_refusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{"", "m{", strings.Repeat("(", 70) + "m", strings.Repeat("m", 70<<10)} {
		_, err := render.Foreign(expr, web())
		require.Equal(t, problem.Invalid, problem.KindOf(err))
	}
}
