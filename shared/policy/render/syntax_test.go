package render_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/render"
)

func TestWhatCannotBeParsedIsShownWhereItStands(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		expr, violatedIf string
		path             string
		line, column     int
		excerpt          string
	}{
		"an open bracket": {expr: "rate(foo[5m", path: "spec.expr", column: 12, excerpt: "rate(foo[5m\n           ^"},
		"a stray word":    {expr: "up foo", path: "spec.expr", column: 4, excerpt: "up foo\n   ^"},
		"behind a placeholder": {
			expr: "up{{{subject_label_selector}}} > {{n}} foo", path: "spec.expr", column: 40,
			excerpt: "up{{{subject_label_selector}}} > {{n}} foo\n                                       ^",
		},
		"on the second line, behind a comment": {
			expr: "up # a ) comment\n\t> ) 1", path: "spec.expr", line: 2, column: 4, excerpt: "\t> ) 1\n\t  ^",
		},
		"a string that does not end": {expr: `up{a="b}`, path: "spec.expr", column: 9, excerpt: "up{a=\"b}\n        ^"},
		"a condition":                {expr: "up", violatedIf: "> )", path: "spec.violatedIf", column: 3, excerpt: "> )\n  ^"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := render.Syntax(&registry.Spec{Type: registry.TelemetrySpec, Expr: row.expr, ViolatedIf: row.violatedIf})
			require.Len(t, got, 1)
			t.Log(got[0].Detail)
			require.Equal(t, row.path, got[0].Path)
			require.Equal(t, row.line, got[0].Line)
			require.Equal(t, row.excerpt, got[0].Excerpt)
			require.Equal(t, row.column, got[0].Column)
		})
	}
	require.Empty(t, render.Syntax(&registry.Spec{Type: registry.TelemetrySpec, Expr: "up", ViolatedIf: "> {{n}}"}))
	require.Empty(t, render.Syntax(&registry.Spec{Type: registry.TemplateSpec, TemplateName: "x"}))
}
