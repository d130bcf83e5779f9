package render

import (
	"fmt"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/littoral-project/littoral/shared/telemetry/rules"
)

// Limits of an expression. The longest template reaches about a tenth of them. Prometheus limits the samples of a query
// but not its text, and a rule is evaluated several times a minute for the whole life of its application.
const (
	maxText      = 16 << 10 // bytes of source text
	maxRendered  = rules.MaxExpr
	maxNodes     = 1000
	maxSelectors = 64
	maxMatchers  = 32 // of one selector
	maxLabels    = 64 // of one list
	maxPattern   = 1 << 10
	maxReach     = 31 * 24 * time.Hour // sum of ranges and offsets
	maxSteps     = 20_000              // of nested subqueries
	defaultStep  = time.Minute         // Prometheus' own evaluation interval
)

// measure refuses expressions beyond the limits. It must be called before anything that is quadratic in the depth, such
// as printing.
func measure(e parser.Expr) error {
	m := meter{}
	return m.measure(e, 0, 1)
}

type meter struct{ nodes, selectors int }

func (m *meter) measure(node parser.Node, reach time.Duration, steps int64) error {
	if m.nodes++; m.nodes > maxNodes {
		return fmt.Errorf("is too large: it has more than %d parts", maxNodes)
	}
	switch n := node.(type) {
	case *parser.VectorSelector:
		if m.selectors++; m.selectors > maxSelectors {
			return fmt.Errorf("is too large: it has more than %d selectors", maxSelectors)
		}
		reach += abs(n.OriginalOffset)
		if len(n.LabelMatchers) > maxMatchers {
			return fmt.Errorf("is too large: a selector has more than %d matchers", maxMatchers)
		}
		for _, matcher := range n.LabelMatchers {
			if len(matcher.Value) > maxPattern {
				return fmt.Errorf("is too large: a matcher is longer than %d bytes", maxPattern)
			}
		}
	case *parser.MatrixSelector:
		reach += n.Range
	case *parser.SubqueryExpr:
		reach += n.Range + abs(n.OriginalOffset)
		step := n.Step
		if step <= 0 {
			step = defaultStep
		}
		if steps *= int64(n.Range/step) + 1; steps > maxSteps {
			return fmt.Errorf("is too costly: its subqueries take more than %d steps", maxSteps)
		}
	case *parser.AggregateExpr:
		if len(n.Grouping) > maxLabels {
			return fmt.Errorf("is too large: a list has more than %d labels", maxLabels)
		}
	case *parser.BinaryExpr:
		if v := n.VectorMatching; v != nil && (len(v.MatchingLabels) > maxLabels || len(v.Include) > maxLabels) {
			return fmt.Errorf("is too large: a list has more than %d labels", maxLabels)
		}
	}
	if reach > maxReach {
		return fmt.Errorf("is too costly: it looks back more than %d days", maxReach/(24*time.Hour))
	}
	for child := range parser.ChildrenIter(node) {
		if err := m.measure(child, reach, steps); err != nil {
			return err
		}
	}
	return nil
}

func abs(d time.Duration) time.Duration { return max(d, -d) }
