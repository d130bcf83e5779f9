package render_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/render"
	"github.com/littoral-project/littoral/shared/policy/template"
	"github.com/littoral-project/littoral/shared/problem"
)

var sets = flag.Int("sets", 5_000, "how many variable sets TestRendering_neverChangesTheShape tries")

// everywhere has a placeholder at each place that accepts one.
const everywhere = `sum by ({{subject_label_list}}, {{l}}) (
  label_replace(rate(m{a="{{t}}", b=~"{{p}}", c!~"x{{p}}|{{t}}", d!="{{appComponent}}", {{subject_label_selector}}
    }[{{d}}]),
    "x", "$1-{{t}}", "y", "(.*)")
) * on ({{l}}) group_left ({{subject_label_list}})
  max_over_time(n{{{subject_label_selector}}}[{{d}}:{{d}}] offset -{{d}})
  - topk({{n}}, o{{{subject_label_selector}}} offset {{d}}) ^ -{{n}} > {{n}}`

// texts returns the expression of each template, and one of our own, by name.
func texts() map[string]string {
	out := map[string]string{"everywhere": everywhere}
	for _, t := range template.All() {
		out[t.Name] = t.Expr
	}
	return out
}

// shape formats a tree without its literals: its operations, metrics, and numbers of labels. It is independent of how
// rendering compares trees. Parentheses are ignored.
func shape(b *strings.Builder, node parser.Node) {
	switch n := node.(type) {
	case *parser.ParenExpr:
		shape(b, n.Expr)
		return
	case *parser.VectorSelector:
		fmt.Fprintf(b, "selector %s", n.Name)
	case *parser.BinaryExpr:
		fmt.Fprintf(b, "%s %t", n.Op, n.ReturnBool)
		if v := n.VectorMatching; v != nil {
			fmt.Fprintf(b, " %s %t", v.Card, v.On)
		}
	case *parser.AggregateExpr:
		fmt.Fprintf(b, "%s %t", n.Op, n.Without)
	case *parser.Call:
		b.WriteString(n.Func.Name)
	case *parser.UnaryExpr:
		b.WriteString(n.Op.String())
	default:
		fmt.Fprintf(b, "%T", n)
	}
	b.WriteByte('(')
	for _, child := range parser.Children(node) {
		shape(b, child)
		b.WriteByte(';')
	}
	b.WriteByte(')')
}

func shapeOf(t testing.TB, expr string) (string, []*parser.VectorSelector) {
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	require.NoError(t, err, expr)
	var b strings.Builder
	shape(&b, tree)
	var selectors []*parser.VectorSelector
	parser.Inspect(tree, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			selectors = append(selectors, s)
		}
		return nil
	})
	return b.String(), selectors
}

// outline is the expected form of a rendered text: its shape, and which of its selectors are the subject's.
type outline struct {
	shape string
	bound []bool
	plain []int // matchers of each selector that are not the subject's
}

func outlines(t testing.TB) map[string]outline {
	out := map[string]outline{}
	for name, text := range texts() {
		r, err := render.Query(text, "", web(), ordinary)
		require.NoError(t, err, name)
		shape, selectors := shapeOf(t, r.Expr)
		m := outline{shape: shape}
		for _, s := range selectors {
			bound := carriesAll(s, web())
			m.bound = append(m.bound, bound)
			m.plain = append(m.plain, len(s.LabelMatchers))
		}
		out[name] = m
	}
	return out
}

var ordinary = map[string]any{
	"l": "x", "t": "text", "p": "a|b", "d": "1m", "n": int64(1),
	"threshold": 0.5, "maxCpuUsagePercent": 0.5, "compssTask": "a.b", "thresholdTimeSeconds": int64(9),
	"device": "squat.ai/video", "least": int64(1), "timeout": "5m", "lookback": "6h", "gap": "1m", "since": int64(0),
	"maxEvents": int64(0), "severity": ".+", "eventName": ".+",
}

// carriesAll reports whether a selector has one matcher for each label of the subject, of the type and value in
// shared/docs/contracts.md §3.6.
// It has its own implementation of the subject.
func carriesAll(s *parser.VectorSelector, subject registry.Subject) bool {
	for label, value := range map[string]string{
		"icos_app_name": subject.AppName, "icos_app_instance": subject.AppInstance,
		"icos_app_component": subject.AppComponent,
	} {
		kind := labels.MatchEqual
		if value == "*" {
			kind, value = labels.MatchRegexp, ".+"
		} else if strings.HasPrefix(value, "/") && strings.HasSuffix(value, "/") && len(value) > 2 {
			kind, value = labels.MatchRegexp, value[1:len(value)-1]
		}
		found := false
		for _, m := range s.LabelMatchers {
			found = found || m.Name == label && m.Type == kind && m.Value == value
		}
		if !found {
			return false
		}
	}
	return true
}

// requireSame checks that a rendering is either refused as Invalid or matches the outline.
func requireSame(t testing.TB, want outline, text string, subject registry.Subject, variables map[string]any) bool {
	r, err := render.Query(text, "", subject, variables)
	if err != nil {
		require.Equal(t, problem.Invalid, problem.KindOf(err), "%v", err)
		return false
	}
	shape, selectors := shapeOf(t, r.Expr)
	require.Equal(t, want.shape, shape, "%v %v", subject, variables)
	require.Len(t, selectors, len(want.bound))
	for i, s := range selectors {
		require.Len(t, s.LabelMatchers, want.plain[i], "%s of %v", s, variables)
		if want.bound[i] {
			require.True(t, carriesAll(s, subject), "%s lost the matchers of %v", s, subject)
		}
	}
	return true
}

// hostile are texts with which an attacker might try to break out of a literal.
var hostile = []string{
	`"`, `'`, "`", `\`, `\"`, `}`, `{`, `}}`, `{{`, `{{n}}`, `{{subject_label_selector}}`, `)`, `(`, `[`, `]`, `,`, ` or `,
	` unless `, `up`, `=`, `=~`, `!=`, `.+`, `.*`, `|`, `#`, "\n", "\r", "\x00", "\t", `$1`, `(?i)`, `(?:`, `*`, `/`,
	`/.*/`,
	`icos_app_instance`, `"} or up{a="`, `x"}[1h]) or vector(1) #`, `0x1F`, `1e9`, `-1`, `+`, `5m`, `1d2h`, `Inf`, `NaN`,
	`zzhole0x0z`, `zzhole0x`, `4503599634710529`, `199999999937ms`, `é`, `\u00e9`, "\u2028", "\u00ad",
	"\U0001F600", "\xff",
	`offset`, `@`, `bool`, `a`, `b_c`, `__name__`, ``, ` `,
}

func hostileText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(5) {
		b.WriteString(hostile[r.IntN(len(hostile))])
	}
	return b.String()
}

func value(r *rand.Rand) any {
	switch r.IntN(8) {
	case 0:
		return r.Int64() - r.Int64()
	case 1:
		return (r.Float64() - 0.5) * float64(r.Int64N(1<<40))
	case 2:
		return template.FormatDuration(time.Duration(r.Int64N(int64(4 * 24 * time.Hour))))
	case 3:
		return fmt.Sprint(r.Float64())
	}
	return hostileText(r)
}

func variableSet(r *rand.Rand, names []string) map[string]any {
	variables := make(map[string]any, len(ordinary))
	for _, name := range names {
		// Most values stay ordinary, so that most sets pass the check of kinds.
		if variables[name] = ordinary[name]; r.IntN(3) == 0 {
			variables[name] = value(r)
		}
	}
	return variables
}

func subject(r *rand.Rand) registry.Subject {
	field := func(plain string) string {
		switch r.IntN(6) {
		case 0:
			return "*"
		case 1:
			return "/a|b.c/"
		case 2:
			return "x" + hostileText(r)
		}
		return plain
	}
	return registry.Subject{
		Type: registry.AppSubject, AppName: field("app"), AppInstance: field("i1"), AppComponent: field("web"),
	}
}

// TestRendering_neverChangesTheShape makes random variable sets and subjects that try to break out of their literals.
// The rendered text must have the shape of the template and all matchers of the subject. -sets=1000000 takes some
// minutes.
func TestRendering_neverChangesTheShape(t *testing.T) {
	t.Parallel()
	all, want := texts(), outlines(t)
	var names []string
	for name := range ordinary {
		names = append(names, name)
	}
	var order []string
	for name := range all {
		order = append(order, name)
	}
	// Both orders come from maps; the random choice must not depend on them.
	slices.Sort(names)
	slices.Sort(order)
	r := rand.New(rand.NewPCG(1, 2))
	rendered := 0
	for i := range *sets {
		name := order[i%len(order)]
		if requireSame(t, want[name], all[name], subject(r), variableSet(r, names)) {
			rendered++
		}
	}
	t.Logf("%d of %d were rendered, the others refused", rendered, *sets)
	require.Greater(t, rendered, *sets/10)
}

func FuzzRendering(f *testing.F) {
	for _, h := range hostile {
		f.Add(h, "1m", "0.5", "x, y", "app", "i1", "web")
		f.Add("a", h, h, h, h, "*", "/a|b/")
	}
	all, want := texts(), outlines(f)
	f.Fuzz(func(t *testing.T, text, duration, number, list, app, instance, component string) {
		s := registry.Subject{Type: registry.AppSubject, AppName: app, AppInstance: instance, AppComponent: component}
		if app == "" || instance == "" || component == "" {
			return
		}
		variables := map[string]any{}
		for name, v := range ordinary {
			variables[name] = v
		}
		variables["t"], variables["p"], variables["l"] = text, text, list
		variables["d"], variables["n"], variables["threshold"] = duration, number, number
		variables["device"], variables["compssTask"], variables["timeout"] = text, text, duration
		for name, expr := range all {
			requireSame(t, want[name], expr, s, variables)
		}
	})
}

// FuzzQuery renders whole expressions: no panic, no long run time, and the rendered text keeps its meaning.
func FuzzQuery(f *testing.F) {
	for _, text := range texts() {
		f.Add(text, "> {{n}}")
	}
	for _, h := range hostile {
		f.Add(`m{a="`+h+`"} > {{n}}`, h)
		f.Add(h, "> 5")
	}
	f.Fuzz(func(t *testing.T, expr, violatedIf string) {
		r, err := render.Query(expr, violatedIf, web(), ordinary)
		if err != nil {
			require.Equal(t, problem.Invalid, problem.KindOf(err))
			return
		}
		tree, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
		require.NoError(t, err)
		require.Equal(t, r.Expr, tree.String())
		_, err = render.Foreign(r.Expr, web())
		require.NoError(t, err)
	})
}

func BenchmarkPolicy(b *testing.B) {
	for _, name := range []string{template.CPUUsage, template.CPUUsageExcl, template.SCAScore} {
		b.Run(name, func(b *testing.B) {
			p := registry.Policy{
				Subject: web(), Spec: registry.Spec{Type: registry.TemplateSpec, TemplateName: name},
				Variables: registry.Variables{"threshold": 0.5},
			}
			for b.Loop() {
				if _, err := render.Policy(&p, time.Minute); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
