package render

import (
	"math"
	"reflect"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// equal reports whether two trees are the same expression: node for node, with the same literals. Positions in the text
// and the order of matchers in a selector are ignored.
func equal(a, b parser.Node) bool {
	if reflect.TypeOf(a) != reflect.TypeOf(b) || !sameNode(a, b) {
		return false
	}
	inA, inB := parser.Children(a), parser.Children(b)
	return slices.EqualFunc(inA, inB, equal)
}

// sameNode compares two nodes of one type without their children.
func sameNode(a, b parser.Node) bool {
	switch a := a.(type) {
	case *parser.NumberLiteral:
		b := b.(*parser.NumberLiteral)
		return math.Float64bits(a.Val) == math.Float64bits(b.Val) || (math.IsNaN(a.Val) && math.IsNaN(b.Val))
	case *parser.StringLiteral:
		return a.Val == b.(*parser.StringLiteral).Val
	case *parser.VectorSelector:
		b := b.(*parser.VectorSelector)
		return a.Name == b.Name && a.OriginalOffset == b.OriginalOffset && a.StartOrEnd == b.StartOrEnd &&
			sameInstant(a.Timestamp, b.Timestamp) && sameMatchers(a.LabelMatchers, b.LabelMatchers)
	case *parser.MatrixSelector:
		return a.Range == b.(*parser.MatrixSelector).Range
	case *parser.SubqueryExpr:
		b := b.(*parser.SubqueryExpr)
		return a.Range == b.Range && a.Step == b.Step && a.OriginalOffset == b.OriginalOffset &&
			a.StartOrEnd == b.StartOrEnd && sameInstant(a.Timestamp, b.Timestamp)
	case *parser.AggregateExpr:
		b := b.(*parser.AggregateExpr)
		return a.Op == b.Op && a.Without == b.Without && slices.Equal(a.Grouping, b.Grouping)
	case *parser.BinaryExpr:
		b := b.(*parser.BinaryExpr)
		return a.Op == b.Op && a.ReturnBool == b.ReturnBool && sameMatching(a.VectorMatching, b.VectorMatching)
	case *parser.Call:
		return a.Func.Name == b.(*parser.Call).Func.Name
	case *parser.UnaryExpr:
		return a.Op == b.(*parser.UnaryExpr).Op
	case *parser.ParenExpr:
		return true
	}
	return false
}

func sameInstant(a, b *int64) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

func sameMatching(a, b *parser.VectorMatching) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Card == b.Card && a.On == b.On && slices.Equal(a.MatchingLabels, b.MatchingLabels) &&
		slices.Equal(a.Include, b.Include)
}

func sameMatchers(a, b []*labels.Matcher) bool {
	texts := func(matchers []*labels.Matcher) []string {
		out := make([]string, len(matchers))
		for i, m := range matchers {
			out[i] = m.String()
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(texts(a), texts(b))
}
