package solver

// Price is the dual value of what is scarce: what one more of it would add to the bound.
type Price struct {
	Node, Dim      int // of an amount, else -1
	Spread, Domain int // of a place in a spread, else -1
	Points         float64
}

// scarce returns the prices that are not zero.
func (d *dual) scarce(y []float64) []Price {
	dims := d.m.Dims
	var out []Price
	for l, n := range d.node {
		for i := range dims {
			if v := y[l*dims+i]; v > 0 && n >= 0 {
				out = append(out, Price{Node: int(n), Dim: i, Spread: -1, Domain: -1, Points: v / d.units[i]})
			}
		}
	}
	for i := range d.rows {
		r := &d.rows[i]
		if r.spread < 0 {
			continue
		}
		for j := range r.names {
			if v := y[r.at+j]; v > 0 {
				out = append(out, Price{Node: -1, Dim: -1, Spread: int(r.spread), Domain: j, Points: v})
			}
		}
	}
	return out
}

// slotPrice converts the price of one slot of a node into that of the dim that runs out first.
func (m *Model) slotPrice(n int32, points float64) Price {
	least, tightest := int64(-1), Amount{}
	for _, a := range m.Classes[0].Demand {
		if slots := m.Free[int(n)*m.Dims+a.Dim] / a.Amount; least < 0 || slots < least {
			least, tightest = slots, a
		}
	}
	return Price{
		Node: int(n), Dim: tightest.Dim, Spread: -1, Domain: -1, Points: points / float64(tightest.Amount),
	}
}
