package render

import "github.com/prometheus/prometheus/promql/parser"

// Watched returns what the expression compares, without the comparison at its end. It shows the watched values even
// while the policy is not violated. Without such a comparison, it returns the expression unchanged.
func Watched(expr string) (string, error) {
	tree, err := parse(expr)
	if err != nil {
		return "", invalidAt("spec.expr", err)
	}
	inner := tree
	if now, ok := split(tree); ok { // of a policy that looks ahead
		inner = now
	}
	for {
		p, ok := inner.(*parser.ParenExpr)
		if !ok {
			break
		}
		inner = p.Expr
	}
	b, ok := inner.(*parser.BinaryExpr)
	if !ok || !b.Op.IsComparisonOperator() || b.ReturnBool || b.LHS.Type() != parser.ValueTypeVector {
		return tree.String(), nil
	}
	return b.LHS.String(), nil
}

// Present returns the expression of a policy without its forecast.
func Present(expr string) (string, error) {
	tree, err := parse(expr)
	if err != nil {
		return "", invalidAt("spec.expr", err)
	}
	if now, ok := split(tree); ok {
		return now.String(), nil
	}
	return tree.String(), nil
}
