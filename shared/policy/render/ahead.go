package render

import (
	"errors"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/littoral-project/littoral/shared/policy/registry"
)

// How a violation is foreseen: what is compared is taken as the line through its course of late, as long as it looks ahead,
// and no less than leastCourse.
const (
	leastCourse = 10 * time.Minute
	mostCourse  = 6 * time.Hour
	points      = 40 // of a course
	leastPoints = 30 // two points make a line, too, but foresee nothing
	leastStep   = 15 * time.Second
)

// foreseen is the expression of a policy that looks ahead: violated now, or where the line of what it compares leads. It
// is put together as a tree, printed and compared like any other. The error is Invalid.
func foreseen(spec registry.Spec, ahead time.Duration) (string, error) {
	refused := func(why string) (string, error) { return "", invalidAt("properties.forecast", errors.New(why)) }
	if spec.Type != registry.TelemetrySpec {
		return refused("needs a policy that watches telemetry")
	}
	trees := make([]*parser.BinaryExpr, 3) // a tree has no part twice
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
	now, later, often := trees[0], trees[1], trees[2]
	later.LHS = call("predict_linear", course(later.LHS, ahead), &parser.NumberLiteral{Val: ahead.Seconds()})
	known := &parser.BinaryExpr{
		Op: parser.GTE, LHS: call("count_over_time", course(often.LHS, ahead)), RHS: &parser.NumberLiteral{Val: leastPoints},
	}
	whole := &parser.BinaryExpr{
		Op: parser.LOR, LHS: grouped(now), VectorMatching: &parser.VectorMatching{Card: parser.CardManyToMany},
		RHS: &parser.ParenExpr{Expr: &parser.BinaryExpr{
			Op: parser.LAND, LHS: grouped(later), RHS: grouped(known), VectorMatching: &parser.VectorMatching{Card: parser.CardManyToMany},
		}},
	}
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

// split returns what the expression of a policy that looks ahead compares now.
func split(e parser.Expr) (now parser.Expr, ok bool) {
	whole, ok := bare(e).(*parser.BinaryExpr)
	if !ok || whole.Op != parser.LOR {
		return nil, false
	}
	both, ok := bare(whole.RHS).(*parser.BinaryExpr)
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
