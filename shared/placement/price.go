package placement

import (
	"cmp"
	"slices"
)

// maxPrices is how many prices a plan shows.
const maxPrices = 50

// priced returns the prices that are not negligible, highest first by the price of the whole capacity.
func (d *dual) priced(y []float64) []Price {
	m := d.m
	var out []Price
	dims := len(m.dims)
	for l, n := range d.node {
		for i := range dims {
			if v := y[l*dims+i]; v > 0 && n >= 0 {
				out = append(out, m.amountPrice(n, i, v/d.units[i]))
			}
		}
	}
	for i := range d.rows {
		r := &d.rows[i]
		if r.spread == nil {
			continue
		}
		for j, name := range r.spread.names {
			if v := y[r.at+j]; v > 0 {
				out = append(out, Price{
					Target: Target{Cluster: name}, Rule: RuleSpread, Key: r.spread.By, Points: v, Unit: "member",
				})
			}
		}
	}
	return out
}

// amountPrice converts the price of one dim of a node, given for a single unit.
func (m *model) amountPrice(n int32, dim int, points float64) Price {
	what := m.dims[dim]
	out := Price{Target: m.nodes[n].Target(), Rule: what.rule, Key: what.key, Points: points, Unit: "unit"}
	switch what.rule {
	case RuleCPU:
		out.Points, out.Unit = points*1000, "core"
	case RuleMemory:
		out.Points, out.Unit = points*(1<<30), "GiB"
	case RuleDevice:
		out.Unit = "device"
	}
	return out
}

// slotPrice converts the price of one slot of a node into that of the dim that runs out first.
func (m *model) slotPrice(n int32, points float64) Price {
	least, tightest := int64(-1), amount{}
	for _, a := range m.classes[0].demand {
		if slots := m.free[int(n)*len(m.dims)+a.dim] / a.amount; least < 0 || slots < least {
			least, tightest = slots, a
		}
	}
	return m.amountPrice(n, tightest.dim, points/float64(tightest.amount))
}

// dearest keeps the highest prices, in order, without those that are only rounding errors.
func dearest(all []Price) []Price {
	all = slices.DeleteFunc(all, func(p Price) bool { return p.Points < 0.005 })
	slices.SortStableFunc(all, func(a, b Price) int {
		return cmp.Or(cmp.Compare(b.Points, a.Points), cmp.Compare(place(a.Target), place(b.Target)),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
	return all[:min(len(all), maxPrices)]
}
