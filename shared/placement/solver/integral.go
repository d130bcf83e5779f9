package solver

import (
	"math"
	"slices"
)

// rounded lowers a bound to the highest possible sum of this problem's points, if all of them are whole numbers.
func (m *Model) rounded(bound float64) float64 {
	if !m.whole() {
		return bound
	}
	return math.Floor(bound + 1e-6)
}

// whole reports whether all relevant values are in whole points.
func (m *Model) whole() bool {
	if m.isWhole == 0 {
		m.isWhole = -1
		if m.allWhole() {
			m.isWhole = 1
		}
	}
	return m.isWhole > 0
}

func (m *Model) allWhole() bool {
	whole := func(v float64) bool { return v == math.Floor(v) && v < 1e9 }
	if !whole(m.MoveCost) {
		return false
	}
	for i := range m.Classes {
		if slices.ContainsFunc(m.Classes[i].Points, func(v float64) bool { return !whole(v) }) {
			return false
		}
	}
	for _, es := range m.Edges {
		for i := range es {
			w, sc := es[i].Weight, es[i].Scope
			if !whole(w*sc.Node) || !whole(w*sc.Cluster) || !whole(w*sc.Orchestrator) || (m.Links != nil && sc.Linked) {
				return false
			}
		}
	}
	return true
}
