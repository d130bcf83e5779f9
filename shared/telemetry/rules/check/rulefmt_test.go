package check_test

import (
	"encoding/json"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/util/features"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/telemetry/rules"
	"github.com/littoral-project/littoral/shared/telemetry/rules/check"
)

// loads reports Prometheus' own result for the group in a rule file.
func loads(t testing.TB, g rules.Group) []error {
	t.Helper()
	file, err := yaml.Marshal(rules.Groups{Groups: []rules.Group{g}})
	require.NoError(t, err)
	_, errs := rulefmt.Parse(
		file, false, model.UTF8Validation, parser.NewParser(parser.Options{}), promslog.NewNopLogger(),
	)
	return errs
}

func takes(t testing.TB, g rules.Group) error {
	t.Helper()
	body, err := json.Marshal(rules.Groups{Groups: []rules.Group{g}})
	require.NoError(t, err)
	_, err = check.Request(body)
	return err
}

func agree(t testing.TB, g rules.Group) {
	t.Helper()
	theirs, ours := loads(t, g), takes(t, g)
	require.Equal(t, len(theirs) == 0, ours == nil, "%+v: Prometheus says %v, we say %v", g, theirs, ours)
}

// TestRequest_readsAsPrometheusDoes: every field of a rule with several values, for both kinds of rule.
func TestRequest_readsAsPrometheusDoes(t *testing.T) {
	t.Parallel()
	names := []string{"", "a", "a:b", "a b", "läden", "a{b}", "}", "__name__", "9", "a\nb"}
	durations := []string{"", "0", "0s", "1m", "1h30m", "5", "-1m", "soon", "1m1m", "999999999y"}
	texts := []string{
		"", "x", "{{ $value }}", "{{ $value", "}}", "{{ nobody }}", "{{ $nobody }}", "{{ tmpl \"a\" . }}", "{{ .Labels.x }}",
		"{{ $labels.instance | humanize }}", "{{ range query \"up\" }}{{ . | first }}{{ end }}", "{{ range . }}",
		"{{ define \"t\" }}x{{ end }}{{ template \"t\" }}", "{{ break }}", "{{ range . }}{{ break }}{{ end }}", "{{/* x */}}",
		"{{ if eq $value 1.0 }}a{{ else }}b{{ end }}", "{{ printf \"%.2f\" $value }}", "{{ $x := 1 }}{{ $x }}",
		"{{ template \"absent\" }}", "{{ 1 2 }}", "{{ }}", "\x7f", "a\nb: [c", "{{`{{`}}",
	}
	exprs := []string{"", "up", "up >", "sum(up) by (x)", "a{b=~\"[\"}", "vector(\"x\")", "1", "foo()", "\"text\"", "up[5m]"}
	good := func(kind string) rules.Rule {
		if kind == "alert" {
			return rules.Rule{Alert: "a", Expr: "up", Labels: map[string]string{}, Annotations: map[string]string{}}
		}
		return rules.Rule{Record: "a", Expr: "up", Labels: map[string]string{}}
	}
	n := 0
	for _, kind := range []string{"alert", "record"} {
		try := func(change func(*rules.Rule)) {
			r := good(kind)
			change(&r)
			agree(t, rules.Group{Name: "g", Rules: []rules.Rule{r}})
			n++
		}
		for _, name := range names {
			try(func(r *rules.Rule) { r.Alert = name })
			try(func(r *rules.Rule) { r.Record = name })
			try(func(r *rules.Rule) { r.Labels[name] = "x" })
			try(func(r *rules.Rule) { r.Annotations = map[string]string{name: "x"} })
			agree(t, rules.Group{Name: "g", Labels: map[string]string{name: "x"}, Rules: []rules.Rule{good(kind)}})
		}
		for _, d := range durations {
			try(func(r *rules.Rule) { r.For = d })
			try(func(r *rules.Rule) { r.KeepFiringFor = d })
			agree(t, rules.Group{Name: "g", Interval: d, QueryOffset: d, Rules: []rules.Rule{good(kind)}})
		}
		for _, text := range texts {
			try(func(r *rules.Rule) { r.Labels["x"] = text })
			try(func(r *rules.Rule) { r.Annotations = map[string]string{"x": text} })
		}
		for _, expr := range exprs {
			try(func(r *rules.Rule) { r.Expr = expr })
		}
	}
	require.Greater(t, n, 200)
}

// TestRequest_knowsEveryFunctionOfATemplate: including those of the next version of Prometheus.
func TestRequest_knowsEveryFunctionOfATemplate(t *testing.T) {
	t.Parallel()
	registry := features.NewRegistry()
	template.RegisterFeatures(registry)
	named := registry.Get()[features.TemplatingFunctions]
	require.NotEmpty(t, named)
	for name := range named {
		g := rules.Group{Name: "g", Rules: []rules.Rule{
			{Alert: "a", Expr: "up", Annotations: map[string]string{"x": "{{ " + name + " }}"}},
		}}
		require.Empty(t, loads(t, g), name)
		require.NoError(t, takes(t, g), name)
	}
}

func FuzzRequest_readsAsPrometheusDoes(f *testing.F) {
	f.Add("a", "", "up > 1", "1m", "l", "x", "n", "{{ $value }}")
	f.Add("", "a:b", "sum(up)", "", "", "", "", "")
	f.Fuzz(func(t *testing.T, alert, record, expr, pending, label, value, annotation, text string) {
		g := rules.Group{Name: "g", Rules: []rules.Rule{{
			Alert: alert, Record: record, Expr: expr, For: pending,
			Labels: map[string]string{label: value}, Annotations: map[string]string{annotation: text},
		}}}
		body, err := json.Marshal(rules.Groups{Groups: []rules.Group{g}})
		require.NoError(t, err)
		groups, err := check.Request(body) // as it came through JSON
		if err == nil {
			require.Empty(t, loads(t, groups[0]), "%+v", groups[0])
		}
	})
}
