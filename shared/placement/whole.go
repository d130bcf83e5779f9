package placement

import (
	"math"
	"slices"
)

// rounded lowers a bound to the highest possible sum of this problem's points, if all of them are whole numbers.
func (m *model) rounded(bound float64) float64 {
	if !m.whole() {
		return bound
	}
	return math.Floor(bound + 1e-6)
}

// whole reports whether all relevant values are in whole points.
func (m *model) whole() bool {
	if m.isWhole == 0 {
		m.isWhole = -1
		if m.allWhole() {
			m.isWhole = 1
		}
	}
	return m.isWhole > 0
}

func (m *model) allWhole() bool {
	whole := func(v float64) bool { return v == math.Floor(v) && v < 1e9 }
	if !whole(m.move) {
		return false
	}
	for i := range m.classes {
		if slices.ContainsFunc(m.classes[i].points, func(v float64) bool { return !whole(v) }) {
			return false
		}
	}
	for _, es := range m.edges {
		for i := range es {
			w, sc := es[i].weight, es[i].scope
			if !whole(w*sc.node) || !whole(w*sc.cluster) || !whole(w*sc.orch) || (m.wires != nil && sc == graded) {
				return false
			}
		}
	}
	return true
}
