package render

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/template"
	"github.com/littoral-project/littoral/shared/problem"
)

// ahead is a policy that looks half an hour ahead.
func ahead(spec registry.Spec, variables registry.Variables) *registry.Policy {
	return &registry.Policy{
		Subject: registry.Subject{Type: registry.AppSubject, AppName: "shop", AppInstance: "i", AppComponent: "web"},
		Spec:    spec, Variables: variables, Properties: registry.Properties{Forecast: "30m"},
	}
}

func query(expr, violatedIf string) registry.Spec {
	return registry.Spec{Type: registry.TelemetrySpec, Expr: expr, ViolatedIf: violatedIf}
}

func TestAPolicyLooksAhead(t *testing.T) {
	t.Parallel()
	spec, err := Policy(ahead(query(`load{ {{subject_label_selector}} }`, "> {{limit}}"), registry.Variables{"limit": 3.0}), time.Minute)
	require.NoError(t, err)
	const load = `load{icos_app_component="web",icos_app_instance="i",icos_app_name="shop"}`
	const asked = `foretold_query="load",icos_app_component="web",icos_app_instance="i",icos_app_name="shop"}`
	const model = `max without (foretold_by, foretold_query, instance, job) (littoral_foretold{` + asked +
		` and ((littoral_foretold_seconds{` + asked + ` >= 900) <= 1800))`
	require.Equal(t, "("+load+" > 3) or (("+model+" > 3) or (((predict_linear(("+load+")[30m:45s], 1800) > 3) and (count_over_time(("+load+
		")[30m:45s]) >= 30)) unless ignoring (instance, job) "+model+"))", spec.Expr)
	require.Equal(t, "> 3", spec.ViolatedIf)
	watched, err := Watched(spec.Expr)
	require.NoError(t, err)
	require.Equal(t, load, watched)
	now, err := Present(spec.Expr)
	require.NoError(t, err)
	require.Equal(t, load+" > 3", now)
	foreign, err := Foreign(spec.Expr, registry.Subject{Type: registry.AppSubject, AppInstance: "i"})
	require.NoError(t, err)
	require.Empty(t, foreign)
}

func TestWhatCannotBeForeseenIsRefused(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{
		`load{ {{subject_label_selector}} }`, `load{ {{subject_label_selector}} } == 3`, `load{ {{subject_label_selector}} } > bool 3`,
		`load{ {{subject_label_selector}} } > limit`,
	} {
		_, err := Policy(ahead(query(expr, ""), nil), time.Minute)
		require.Equal(t, problem.Invalid, problem.KindOf(err), expr)
		require.ErrorContains(t, err, "properties.forecast", expr)
	}
}

// TestEveryTemplateWithALimitLooksAhead: templates whose expression compares a number with a limit, and no others.
func TestEveryTemplateWithALimitLooksAhead(t *testing.T) {
	t.Parallel()
	looks := 0
	for _, name := range template.Names() {
		tmpl, _ := template.Lookup(name)
		if tmpl.Expr == "" {
			continue
		}
		variables := registry.Variables{}
		for _, v := range tmpl.Variables {
			if v.Default != nil {
				continue
			}
			switch v.Kind {
			case template.Number:
				variables[v.Name] = max(v.Min, min(v.Max, 1.0))
			case template.Duration:
				variables[v.Name] = "5m"
			default:
				variables[v.Name] = "x"
			}
		}
		p := ahead(registry.Spec{Type: registry.TemplateSpec, TemplateName: name}, variables)
		spec, err := Policy(p, time.Minute)
		if err != nil {
			require.ErrorContains(t, err, "properties.forecast", name)
			continue
		}
		looks++
		require.Contains(t, spec.Expr, "predict_linear", name)
		now, err := Present(spec.Expr)
		require.NoError(t, err)
		p.Properties.Forecast = ""
		plain, err := Policy(p, time.Minute)
		require.NoError(t, err)
		again, err := Present(plain.Expr)
		require.NoError(t, err)
		require.Equal(t, again, now, name)
	}
	require.Greater(t, looks, 4)
}
