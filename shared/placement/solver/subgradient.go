package solver

import "math"

// Limits of the subgradient method.
const (
	maxRounds = 400
	patience  = 10    // rounds without a useful gain before the step is halved
	leastStep = 1e-3  // of what Polyak's rule proposes
	worthIt   = 0.002 // smallest useful gain, as a share of the gap
)

// descent lowers q(y) by subgradient steps of the length that Polyak proposes (Minimization of unsmooth functionals,
// 1969), with directions that do not turn back on the previous one (Camerini, Fratta and Maffioli, On improving
// relaxation methods by modified gradient techniques, 1975). After some rounds without a gain it restarts from the best
// prices with half the step.
type descent struct {
	d         *dual
	y, best   []float64 // present prices, and the best
	bound     float64   // q(best)
	slope     []float64
	direction []float64
}

func (d *dual) newDescent(y []float64) *descent {
	return &descent{
		d: d, y: append([]float64(nil), y...), best: append([]float64(nil), y...), bound: math.Inf(1),
		slope: make([]float64, len(y)), direction: make([]float64, len(y)),
	}
}

// run continues until the bound meets the value of a known plan, there is no more progress, or stop returns true. see
// is called after each evaluation, while d.at has the labels that the trees chose, and returns the known value by then.
func (x *descent) run(known float64, rounds int, stop func() bool, see func() float64) {
	d := x.d
	part, idle := 1.0, 0
	for round := 0; round < rounds && !stop(); round++ {
		q := d.evaluate(x.y, x.slope)
		idle++
		if q < x.bound {
			if q < x.bound-worthIt*(x.bound-known) {
				idle = 0
			}
			x.bound = q
			copy(x.best, x.y)
		}
		known = see()
		if x.bound <= known+slack(known) {
			return
		}
		if idle > patience {
			idle = 0
			if part /= 2; part < leastStep {
				return
			}
			copy(x.y, x.best)
			clear(x.direction)
			q = d.evaluate(x.y, x.slope)
		}
		x.step(part * (q - known))
	}
}

// step moves the prices by the length that would lower q by gain if q were linear.
func (x *descent) step(gain float64) {
	var turn, length float64
	for i, v := range x.slope {
		if (i < x.d.y.cuts && x.y[i] == 0 && v > 0) || math.Abs(v) < 1e-9 {
			v, x.slope[i] = 0, 0 // a price cannot fall below zero, and rounding errors must not move it
		}
		turn += v * x.direction[i]
		length += x.direction[i] * x.direction[i]
	}
	keep := 0.0
	if turn < 0 {
		keep = -1.5 * turn / length
	}
	length = 0
	for i, v := range x.slope {
		v += keep * x.direction[i]
		x.direction[i] = v
		length += v * v
	}
	if length == 0 {
		return
	}
	for i, v := range x.direction {
		if v != 0 {
			x.y[i] -= gain / length * v
			if i < x.d.y.cuts {
				x.y[i] = min(max(x.y[i], 0), x.d.dearest)
			}
		}
	}
	for i := range x.d.cuts {
		x.d.clamp(&x.d.cuts[i], x.y)
	}
}

// clamp keeps the price for the first end of a cut between zero and the whole weight.
func (d *dual) clamp(k *cut, y []float64) {
	if k.flat {
		return
	}
	node, cluster, orch := k.levels()
	at := y[k.at:]
	for i, most := range []float64{node, cluster, orch} {
		n := []int{len(d.node), len(d.first) - 1, d.m.Orchestrators}[i]
		for j, v := range at[:n] {
			at[j] = min(max(v, 0), most)
		}
		at = at[n:]
	}
}
