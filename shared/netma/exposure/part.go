package exposure

import (
	"math"
	"time"

	"github.com/littoral-project/littoral/shared/alto"
	"github.com/littoral-project/littoral/shared/netma/view"
)

// mostForeseen bounds the values of the calendars of an answer.
const mostForeseen = 4_000_000

// part is what is asked for of the costs; from and to are the numbers of its places, -1 for one that there is not.
type part struct {
	view     *view.View
	filter   *alto.CostFilter
	from, to []int
}

func (p part) write(name string, meta alto.Meta, sources, targets []string, now time.Time) ([]byte, error) {
	if p.filter.Multi {
		meta.MultiCostTypes = p.filter.Types
	} else {
		meta.CostType = &p.filter.Types[0]
	}
	tested := p.tables(p.view, p.filter.Tested)
	m := alto.Matrix{Sources: sources, Targets: targets, Cost: p.tables(p.view, p.filter.Types)}
	m.Passes = func(s, t int) bool { // bounds are of the present costs
		return p.filter.Passes(func(kind int) (float64, bool) { return tested(kind, s, t) })
	}
	if err := p.foresee(&m, &meta, now); err != nil {
		return nil, err
	}
	return alto.AppendCosts(nil, name, meta, m)
}

// tables returns costs by the numbers of the rows and columns of the answer.
func (p part) tables(v *view.View, kinds []alto.CostType) func(kind, s, t int) (float64, bool) {
	all := make([]func(from, to int) (float64, bool), len(kinds))
	for i, kind := range kinds {
		all[i] = costOf(v, kind)
	}
	return func(kind, s, t int) (float64, bool) {
		if p.from[s] < 0 || p.to[t] < 0 {
			return 0, false
		}
		return all[kind](p.from[s], p.to[t])
	}
}

// foresee adds the calendars that are asked for. The costs of all places are worked out for one interval after the other, since those of
// a large network are too many to have at once; what the answer needs of them is kept.
func (p part) foresee(m *alto.Matrix, meta *alto.Meta, now time.Time) error {
	var kinds []alto.CostType
	at := map[int]int{} // of a type that is calendared: its number among them
	for i, wanted := range p.filter.Calendared {
		if wanted {
			at[i] = len(kinds)
			kinds = append(kinds, p.filter.Types[i])
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	calendar := p.view.Calendar(now)
	about := alto.Calendar{}
	for _, kind := range kinds {
		if metric, _ := view.MetricOf(kind.Metric); !calendar.Has(metric) {
			return alto.BadValue("calendared", kind.Mode+" "+kind.Metric+" has no calendar")
		}
		about.CostTypeNames = append(about.CostTypeNames, nameOf(kind))
	}
	about.Start, about.IntervalSize, about.NumberOfIntervals = alto.HTTPDate(calendar.Start), calendar.Interval.Seconds(), calendar.Count
	meta.Calendars = []alto.Calendar{about}
	pairs := len(p.from) * len(p.to)
	if pairs*len(kinds)*calendar.Count > mostForeseen {
		return alto.BadValue("calendared", "of more places than can be answered at once")
	}
	values := make([]float32, 0, pairs*len(kinds)*calendar.Count)
	for i := range calendar.Count {
		cost := p.tables(calendar.View(i), kinds)
		for kind := range kinds {
			for s := range p.from {
				for t := range p.to {
					v, known := cost(kind, s, t)
					if !known {
						v = math.NaN()
					}
					values = append(values, float32(v))
				}
			}
		}
	}
	m.Intervals = calendar.Count
	m.Calendared = func(kind int) bool { _, is := at[kind]; return is }
	m.Foreseen = func(kind, interval, s, t int) (float64, bool) {
		v := values[((interval*len(kinds)+at[kind])*len(p.from)+s)*len(p.to)+t]
		return float64(v), v == v // not NaN
	}
	return nil
}
