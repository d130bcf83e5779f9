package render

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/template"
	"github.com/littoral-project/littoral/shared/problem"
)

// promql is the parser with Prometheus' default features, which every rule file may use.
var promql = parser.NewParser(parser.Options{})

// Policy returns the spec of a policy with all placeholders filled in: it is stored in the policy's status and becomes
// its alert rule. The expression then includes the violatedIf of a query. The condition is also returned separately,
// since it determines in which direction thresholds are exceeded. A spec of constraints has no placeholders. staleAfter
// is how long a host may be silent here.
//
// The error is Invalid and names the faulty fields as in the policy: spec.expr, variables.threshold.
func Policy(p *registry.Policy, staleAfter time.Duration) (registry.Spec, error) {
	spec, err := present(p, staleAfter)
	if ahead := p.Properties.Ahead(); err == nil && ahead > 0 {
		spec.Expr, err = foreseen(spec, ahead)
	}
	return spec, err
}

// present renders a policy that is violated when it is, and not before.
func present(p *registry.Policy, staleAfter time.Duration) (registry.Spec, error) {
	switch p.Spec.Type {
	case registry.ConstraintsSpec:
		return p.Spec, nil
	case registry.TemplateSpec:
		return ofTemplate(p, staleAfter)
	case registry.TelemetrySpec:
	}
	// Thresholds may be used as placeholders too; a variable of the same name has precedence.
	variables := make(map[string]any, len(p.Variables)+len(p.Spec.Thresholds))
	for name, value := range p.Spec.Thresholds {
		variables[name] = value
	}
	for name, value := range p.Variables {
		variables[name] = value
	}
	spec := p.Spec
	r, err := Query(p.Spec.Expr, p.Spec.ViolatedIf, p.Subject, variables)
	if err != nil {
		return registry.Spec{}, err
	}
	spec.Expr, spec.ViolatedIf = r.Expr, r.Condition
	return spec, nil
}

// leastGap is far above the usual time between two samples of a host.
const leastGap = time.Minute

func ofTemplate(p *registry.Policy, staleAfter time.Duration) (registry.Spec, error) {
	var faults problem.Faults
	t, known := template.Lookup(p.Spec.TemplateName)
	if !known {
		faults.Add("spec.templateName", 0, "is not a template: %s", strings.Join(template.Names(), ", "))
		return registry.Spec{}, faults.Err(invalid)
	}
	text := t.Expr
	if p.Subject.Type == registry.HostSubject {
		text = t.HostExpr
	}
	if text == "" || p.Subject.Type == registry.CustomSubject {
		faults.Add("subject.type", 0, "template %s is not for a subject of type %s", t.Name, p.Subject.Type)
		return registry.Spec{}, faults.Err(invalid)
	}
	given := map[string]any{}
	maps.Copy(given, p.Variables)
	if _, said := given[template.Since]; !said && !p.Started.IsZero() {
		given[template.Since] = p.Started.Unix() // only some templates have the placeholder
	}
	if silence, lost := p.Silence(); lost && given[template.Gap] == nil {
		given[template.Gap] = min(silence, max(leastGap, staleAfter)) // else the last host would seem to come and go
	}
	variables := t.Complete(given, "variables", &faults)
	if err := faults.Err(invalid); err != nil {
		return registry.Spec{}, err
	}
	r, err := Query(text, "", p.Subject, variables)
	if err != nil {
		return registry.Spec{}, err
	}
	return registry.Spec{
		Type: registry.TelemetrySpec, Description: t.Description, Expr: r.Expr, ViolatedIf: r.Condition,
		Thresholds: t.Thresholds,
	}, nil
}

const invalid = "the policy cannot be rendered"

// Rendered is an expression without placeholders.
type Rendered struct {
	Expr string
	// Condition is the comparison with a number at the end of the expression, such as "> 0.8"; empty if there is none.
	Condition string
}

// Query fills in the placeholders of an expression and of the condition that follows it, which may be empty. The result
// is an instant vector. The condition applies to the expression as a whole, whatever its operators.
func Query(expr, violatedIf string, subject registry.Subject, variables map[string]any) (Rendered, error) {
	values, err := newValues(&subject, variables)
	if err != nil {
		return Rendered{}, invalidAt("subject", err)
	}
	if len(values.matchers) == 0 {
		return Rendered{}, invalidAt("subject", errors.New("has no label"))
	}
	whole, bound, err := values.fill(expr)
	if err != nil {
		return Rendered{}, invalidAt("spec.expr", err)
	}
	if strings.TrimSpace(violatedIf) != "" {
		condition, more, err := values.condition(violatedIf)
		if err != nil {
			return Rendered{}, invalidAt("spec.violatedIf", err)
		}
		if whole.Type() != parser.ValueTypeVector {
			return Rendered{}, invalidAt("spec.expr", notVector(whole))
		}
		condition.LHS, whole = grouped(whole), condition
		for n := range more {
			bound[n] = true
		}
	}
	text, err := values.prove(whole, bound)
	if err != nil {
		return Rendered{}, invalidAt("spec.expr", err)
	}
	return Rendered{Expr: text, Condition: ending(whole)}, nil
}

func invalidAt(path string, err error) error {
	var faults problem.Faults
	var unreadable *syntaxError
	switch f := (fault{}); {
	case errors.As(err, &f):
		faults.Add(f.path, 0, "%s", f.detail)
	case errors.As(err, &unreadable):
		faults.Append(unreadable.field(path))
	default:
		faults.Add(path, 0, "%v", err)
	}
	return faults.Err(invalid)
}

func notVector(e parser.Expr) error {
	return fmt.Errorf("gives a %s, and an alert needs an instant vector", parser.DocumentedType(e.Type()))
}

// fill parses a text and replaces its placeholders. It returns the tree and the selectors bound to the subject.
func (v *values) fill(text string) (parser.Expr, map[*parser.VectorSelector]bool, error) {
	if len(text) > maxText {
		return nil, nil, fmt.Errorf("is longer than %d bytes", maxText)
	}
	m, err := parseMarked("", text)
	if err != nil {
		return nil, nil, err
	}
	return v.fillMarked(m)
}

func (v *values) fillMarked(m marked) (parser.Expr, map[*parser.VectorSelector]bool, error) {
	f := filler{
		values: v, nonce: m.nonce, holes: m.holes, met: make([]int, len(m.holes)), bound: map[*parser.VectorSelector]bool{},
	}
	tree := f.expr(m.tree)
	if err := f.missed(); err != nil {
		return nil, nil, err
	}
	return tree, f.bound, f.err
}

// readable puts the placeholders back into the parser's message.
func readable(err error, nonce string, holes []hole) string {
	text := err.Error()
	for i := len(holes) - 1; i >= 0; i-- {
		text = strings.ReplaceAll(text, strings.TrimSpace(holes[i].sentinel(nonce)), "{{"+holes[i].name+"}}")
	}
	return "is no PromQL: " + problem.Brief(text, 300)
}

// condition parses a comparison without its left side, such as "> 0.5".
func (v *values) condition(text string) (*parser.BinaryExpr, map[*parser.VectorSelector]bool, error) {
	if len(text) > maxText {
		return nil, nil, fmt.Errorf("is longer than %d bytes", maxText)
	}
	m, err := parseMarked("left", text)
	if err != nil {
		return nil, nil, err
	}
	left := m.nonce + "left"
	tree, bound, err := v.fillMarked(m)
	if err != nil {
		return nil, nil, err
	}
	// If the comparison were not the outermost operation, the rest would not apply to the expression as a whole.
	b, ok := tree.(*parser.BinaryExpr)
	if ok {
		selector, alone := b.LHS.(*parser.VectorSelector)
		ok = b.Op.IsComparisonOperator() && alone && selector.Name == left && len(selector.LabelMatchers) == 1
	}
	switch {
	case !ok:
		return nil, nil, errors.New("must be one comparison: >, >=, <, <=, == or != and what to compare with")
	case b.ReturnBool:
		return nil, nil, errors.New("must not have bool: it would always be violated")
	}
	return b, bound, nil
}

// grouped puts an expression in parentheses if an operator after it would bind to only a part.
func grouped(e parser.Expr) parser.Expr {
	switch e.(type) {
	case *parser.BinaryExpr, *parser.UnaryExpr:
		return &parser.ParenExpr{Expr: e}
	}
	return e
}

// prove prints a tree, and verifies that the text parses to the same tree, within the limits and still bound to its
// subject.
func (v *values) prove(tree parser.Expr, bound map[*parser.VectorSelector]bool) (string, error) {
	if err := measure(tree); err != nil {
		return "", err
	}
	text := tree.String()
	if len(text) > maxRendered {
		return "", fmt.Errorf("is longer than %d bytes when rendered", maxRendered)
	}
	again, err := promql.ParseExpr(text)
	if err != nil {
		return "", fmt.Errorf("is no PromQL with these variables: %w", err)
	}
	if !equal(tree, again) {
		return "", errors.New("does not mean the same with these variables as without")
	}
	if again.Type() != parser.ValueTypeVector {
		return "", notVector(again)
	}
	before, after := selectors(tree), selectors(again)
	for i, n := range before {
		if bound[n] && !carries(after[i], v.matchers) {
			return "", errors.New("would lose the matchers of its subject")
		}
	}
	return text, nil
}

// selectors lists the selectors of a tree in the order of a walk, which is always the same.
func selectors(tree parser.Expr) []*parser.VectorSelector {
	var out []*parser.VectorSelector
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		if n, ok := node.(*parser.VectorSelector); ok {
			out = append(out, n)
		}
		return nil
	})
	return out
}

// ending returns the comparison with a number at the end of an expression.
func ending(e parser.Expr) string {
	for {
		p, ok := e.(*parser.ParenExpr)
		if !ok {
			break
		}
		e = p.Expr
	}
	b, ok := e.(*parser.BinaryExpr)
	if !ok || !b.Op.IsComparisonOperator() {
		return ""
	}
	limit := b.RHS
	if p, ok := limit.(*parser.ParenExpr); ok {
		limit = p.Expr
	}
	n, ok := limit.(*parser.NumberLiteral)
	if !ok {
		return ""
	}
	return b.Op.String() + " " + strconv.FormatFloat(n.Val, 'f', -1, 64)
}
