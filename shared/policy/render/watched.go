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
