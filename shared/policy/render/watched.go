package render

import "github.com/prometheus/prometheus/promql/parser"

// Watched returns what an expression compares, without the comparison that it ends in: what the policy looks at, also
// while it is kept. An expression that ends in anything else is returned as it is.
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
