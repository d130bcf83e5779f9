package render

import (
	"errors"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/metricsexport/foretold"
	"github.com/littoral-project/littoral/shared/policy/registry"
)

// How a violation is foreseen: what is compared is taken from a model that metrics export publishes for it, while that beats the naive
// kinds and looks about as far ahead; else as the line through its course of late, as long as the policy looks ahead, and no less than
// leastCourse.
const (
	leastCourse = 10 * time.Minute
	mostCourse  = 6 * time.Hour
	points      = 40 // of a course
	leastPoints = 30 // two points make a line, too, but foresee nothing
	leastStep   = 15 * time.Second
)

// foreseen is the expression of a policy that looks ahead: violated now, or where the model or the line of what it compares leads. It
// is put together as a tree, printed and compared like any other. The error is Invalid.
func foreseen(spec registry.Spec, ahead time.Duration) (string, error) {
	refused := func(why string) (string, error) { return "", invalidAt("properties.forecast", errors.New(why)) }
	if spec.Type != registry.TelemetrySpec {
		return refused("needs a policy that watches telemetry")
	}
	trees := make([]*parser.BinaryExpr, 4) // a tree has no part twice
	for i := range trees {
		tree, err := parse(spec.Expr)
		if err != nil {
			return "", invalidAt("spec.expr", err)
		}
		b, ok := bare(tree).(*parser.BinaryExpr)
		if !ok || ending(b) == "" || b.ReturnBool || b.LHS.Type() != parser.ValueTypeVector || b.Op == parser.EQLC || b.Op == parser.NEQ {
			return refused("needs an expression that ends in a comparison with a number: >, >=, < or <=")
		}
		trees[i] = b
	}
	now, later, often, compared := trees[0], trees[1], trees[2], trees[3]
	later.LHS = call("predict_linear", course(later.LHS, ahead), &parser.NumberLiteral{Val: ahead.Seconds()})
	known := &parser.BinaryExpr{
		Op: parser.GTE, LHS: call("count_over_time", course(often.LHS, ahead)), RHS: &parser.NumberLiteral{Val: leastPoints},
	}
	led := set(parser.LAND, later, known)
	if modelled := modelOf(now, ahead); modelled != nil {
		compared.LHS = modelOf(now, ahead)
		unmodelled := set(parser.LUNLESS, led, modelled)
		unmodelled.VectorMatching.MatchingLabels = ofTargets
		led = set(parser.LOR, compared, unmodelled)
	}
	whole := set(parser.LOR, now, led)
	if err := measure(whole); err != nil {
		return "", invalidAt("properties.forecast", err)
	}
	text := whole.String()
	again, err := promql.ParseExpr(text)
	if err != nil || !equal(whole, again) || len(text) > maxRendered {
		return refused("cannot be combined with the expression")
	}
	return text, nil
}

// course is what a vector was of late.
func course(vector parser.Expr, ahead time.Duration) parser.Expr {
	length := min(max(ahead, leastCourse), mostCourse)
	return &parser.SubqueryExpr{
		Expr: &parser.ParenExpr{Expr: vector}, Range: length, Step: max(length/points, leastStep).Truncate(time.Second),
	}
}

func call(name string, args ...parser.Expr) parser.Expr {
	return &parser.Call{Func: parser.Functions[name], Args: args}
}

func bare(e parser.Expr) parser.Expr {
	for {
		p, ok := e.(*parser.ParenExpr)
		if !ok {
			return e
		}
		e = p.Expr
	}
}

// set is an operation on two sets of series.
func set(op parser.ItemType, left, right parser.Expr) *parser.BinaryExpr {
	return &parser.BinaryExpr{
		Op: op, LHS: grouped(left), RHS: grouped(right), VectorMatching: &parser.VectorMatching{Card: parser.CardManyToMany},
	}
}

// ofTargets are labels that say who was scraped: those of a forecast are of who made it.
var ofTargets = []string{"instance", "job"}

// modelOf is what a model foresees of what a comparison has on its left, in each series of the subject; nil where none can be published for
// it. The matchers of the subject are asked of the forecast, whose query is that of all subjects.
func modelOf(b *parser.BinaryExpr, ahead time.Duration) parser.Expr {
	tree, err := parse(b.LHS.String()) // a tree of its own
	if err != nil {
		return nil
	}
	var subject []*labels.Matcher
	for i, n := range selectors(tree) {
		var own []*labels.Matcher
		n.LabelMatchers = slices.DeleteFunc(n.LabelMatchers, func(m *labels.Matcher) bool {
			is := slices.Contains(ofSubjects, m.Name)
			if is {
				own = append(own, m)
			}
			return is
		})
		if i > 0 && !sameMatchers(subject, own) {
			return nil
		}
		subject = own
	}
	query := bare(tree).String()
	if len(query) > foretold.MostQuery {
		return nil
	}
	of := func(name string) parser.Expr {
		matchers := append([]*labels.Matcher{
			labels.MustNewMatcher(labels.MatchEqual, metricName, name), labels.MustNewMatcher(labels.MatchEqual, foretold.Query, query),
		}, subject...)
		return &parser.VectorSelector{Name: name, LabelMatchers: matchers}
	}
	far := &parser.BinaryExpr{
		Op: parser.LTE, RHS: &parser.NumberLiteral{Val: ahead.Seconds()},
		LHS: &parser.ParenExpr{Expr: &parser.BinaryExpr{Op: parser.GTE, LHS: of(foretold.Seconds), RHS: &parser.NumberLiteral{Val: ahead.Seconds() / 2}}},
	}
	op := parser.ItemType(parser.MAX) // of several forecasts that which says most
	if b.Op == parser.LSS || b.Op == parser.LTE {
		op = parser.MIN
	}
	return &parser.AggregateExpr{
		Op: op, Expr: set(parser.LAND, of(foretold.Metric), far), Without: true,
		Grouping: append([]string{foretold.By, foretold.Query}, ofTargets...),
	}
}

// ofSubjects are the labels of which a subject is made.
var ofSubjects = []string{label.AppName, label.AppInstance, label.AppComponent}

// split returns what the expression of a policy that looks ahead compares now.
func split(e parser.Expr) (now parser.Expr, ok bool) {
	whole, ok := bare(e).(*parser.BinaryExpr)
	if !ok || whole.Op != parser.LOR {
		return nil, false
	}
	both, ok := bare(whole.RHS).(*parser.BinaryExpr)
	if ok && both.Op == parser.LOR { // with a model
		if both, ok = bare(both.RHS).(*parser.BinaryExpr); ok {
			both, ok = bare(both.LHS).(*parser.BinaryExpr)
		}
	}
	if !ok || both.Op != parser.LAND {
		return nil, false
	}
	compared, ok := bare(both.LHS).(*parser.BinaryExpr)
	if !ok {
		return nil, false
	}
	predicted, ok := bare(compared.LHS).(*parser.Call)
	if !ok || predicted.Func.Name != "predict_linear" {
		return nil, false
	}
	return bare(whole.LHS), true
}
