package render

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// filler replaces the sentinels in a tree. It changes the tree in place and records which sentinels it found. Each must
// occur exactly once: otherwise the text already contained one, or a placeholder is in a place where nothing can be
// inserted.
type filler struct {
	values *values
	nonce  string
	holes  []hole
	met    []int
	bound  map[*parser.VectorSelector]bool // the selectors that the author bound to the subject
	err    error
}

func (f *filler) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// missed returns an error for the first hole that was not found exactly once.
func (f *filler) missed() error {
	for i, h := range f.holes {
		if f.met[i] != 1 {
			return fmt.Errorf("has {{%s}} where nothing can be put", h.name)
		}
	}
	return nil
}

func (f *filler) meet(i int) hole {
	f.met[i]++
	return f.holes[i]
}

// expr returns the expression with its sentinels replaced.
func (f *filler) expr(e parser.Expr) parser.Expr {
	switch n := e.(type) {
	case *parser.NumberLiteral:
		return f.number(n)
	case *parser.StringLiteral:
		n.Val = f.text(n.Val)
	case *parser.VectorSelector:
		f.selector(n)
	case *parser.MatrixSelector:
		n.VectorSelector = f.expr(n.VectorSelector)
		n.Range = f.duration(n.Range)
	case *parser.SubqueryExpr:
		n.Expr = f.expr(n.Expr)
		n.Range, n.Step, n.OriginalOffset = f.duration(n.Range), f.duration(n.Step), f.duration(n.OriginalOffset)
	case *parser.AggregateExpr:
		n.Expr = f.expr(n.Expr)
		if n.Param != nil {
			n.Param = f.expr(n.Param)
		}
		n.Grouping = f.labels(n.Grouping)
	case *parser.BinaryExpr:
		n.LHS, n.RHS = f.expr(n.LHS), f.expr(n.RHS)
		if n.VectorMatching != nil {
			n.VectorMatching.MatchingLabels = f.labels(n.VectorMatching.MatchingLabels)
			n.VectorMatching.Include = f.labels(n.VectorMatching.Include)
		}
	case *parser.Call:
		for i := range n.Args {
			n.Args[i] = f.expr(n.Args[i])
		}
	case *parser.ParenExpr:
		n.Expr = f.expr(n.Expr)
	case *parser.UnaryExpr:
		n.Expr = f.expr(n.Expr)
	default:
		f.fail(fmt.Errorf("has a part of an unknown type %T", e))
	}
	return e
}

// number replaces a literal. A negative number needs parentheses: -3 ^ 2 is not (-3) ^ 2.
func (f *filler) number(n *parser.NumberLiteral) parser.Expr {
	index := math.Abs(n.Val) - firstNumber
	// The condition is negated so that it also catches NaN in the text.
	if !(index >= 0 && index < float64(len(f.holes))) || f.holes[int(index)].where != inNumber {
		return n
	}
	value, err := f.values.number(f.meet(int(index)).name)
	if err != nil {
		f.fail(err)
		return n
	}
	if n.Val < 0 { // the sign before the placeholder belongs to the literal
		value = -value
	}
	n.Val = value
	if math.Signbit(value) {
		return &parser.ParenExpr{Expr: n, PosRange: n.PosRange}
	}
	return n
}

func (f *filler) duration(d time.Duration) time.Duration {
	index := int64(abs(d)/time.Millisecond) - firstMillis
	if index < 0 || index >= int64(len(f.holes)) || f.holes[index].where != inDuration || d%time.Millisecond != 0 {
		return d
	}
	value, err := f.values.duration(f.meet(int(index)).name)
	if err != nil {
		f.fail(err)
	}
	if d < 0 {
		return -value
	}
	return value
}

func (f *filler) labels(names []string) []string {
	var out []string
	for _, name := range names {
		in := f.within(name, inLabels)
		if len(in) == 0 {
			out = append(out, name)
			continue
		}
		list, err := f.values.list(in[0].name)
		if err != nil {
			f.fail(err)
		}
		out = append(out, list...)
	}
	return out
}

func (f *filler) text(s string) string {
	in := f.within(s, inText)
	pairs := make([]string, 0, 2*len(in))
	for _, h := range in {
		text, _, err := f.values.text(h.name)
		if err != nil {
			f.fail(err)
		}
		pairs = append(pairs, h.word(f.nonce), text)
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

func (f *filler) selector(n *parser.VectorSelector) {
	n.OriginalOffset = f.duration(n.OriginalOffset)
	matchers := make([]*labels.Matcher, 0, len(n.LabelMatchers)+len(f.values.matchers))
	for _, m := range n.LabelMatchers {
		if in := f.within(m.Name, inMatchers); len(in) > 0 {
			matchers = append(matchers, f.values.matchers...)
			f.bound[n] = true
			continue
		}
		if in := f.within(m.Value, inText); len(in) > 0 {
			filled, err := f.values.matcher(m, in, f.nonce)
			if err != nil {
				f.fail(err)
				continue
			}
			m = filled
		}
		matchers = append(matchers, m)
	}
	n.LabelMatchers = matchers
}

// within returns the holes with sentinels in the text, and counts each occurrence.
func (f *filler) within(text string, at where) []hole {
	if !strings.Contains(text, f.nonce) {
		return nil
	}
	var in []hole
	for i, h := range f.holes {
		if n := strings.Count(text, h.word(f.nonce)); n > 0 && h.where == at {
			f.met[i] += n
			in = append(in, h)
		}
	}
	return in
}

// carries reports whether a selector has all matchers of the subject.
func carries(n *parser.VectorSelector, subject []*labels.Matcher) bool {
	for _, want := range subject {
		found := false
		for _, m := range n.LabelMatchers {
			found = found || same(m, want)
		}
		if !found {
			return false
		}
	}
	return true
}

func same(a, b *labels.Matcher) bool {
	return a.Name == b.Name && a.Type == b.Type && a.Value == b.Value
}
