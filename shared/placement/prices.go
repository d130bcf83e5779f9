package placement

import (
	"cmp"
	"slices"

	"github.com/littoral-project/littoral/shared/placement/solver"
)

// maxPrices is how many prices a plan shows.
const maxPrices = 50

// prices puts what the solver found scarce into words: the highest prices, in order, without those that are only
// rounding errors.
func (m *model) prices(scarce []solver.Price) []Price {
	var out []Price
	for _, s := range scarce {
		if p := m.price(s); p.Points >= 0.005 {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b Price) int {
		return cmp.Or(cmp.Compare(b.Points, a.Points), cmp.Compare(place(a.Target), place(b.Target)),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
	return out[:min(len(out), maxPrices)]
}

func (m *model) price(s solver.Price) Price {
	if s.Spread >= 0 {
		sp := &m.spreads[s.Spread]
		return Price{
			Target: Target{Cluster: sp.names[s.Domain]}, Rule: RuleSpread, Key: sp.By, Points: s.Points, Unit: "member",
		}
	}
	what := m.dims[s.Dim]
	name, amount := what.kind.unit()
	return Price{
		Target: m.nodes[s.Node].Target(), Rule: what.kind.rule(), Key: what.key, Points: s.Points * amount, Unit: name,
	}
}
