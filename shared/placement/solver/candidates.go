package solver

import (
	"math"
	"slices"
)

// leastSorted is the minimum number of candidates that are sorted at a time.
const leastSorted = 256

// Candidate returns the k-th candidate by falling points, ties by node. Most searches end after a few, so only as many
// are sorted as are needed, doubling each time.
func (cl *Class) Candidate(k int) int32 {
	if k >= len(cl.order) {
		cl.sort(max(k+1-len(cl.order), len(cl.order), leastSorted))
	}
	return cl.order[k]
}

// ranked returns all candidates by falling points, ties by node.
func (cl *Class) ranked() []int32 {
	if len(cl.order) < cl.count {
		cl.sort(cl.count)
	}
	return cl.order
}

// sort sorts at least so many more candidates, or all that are left. O(nodes).
func (cl *Class) sort(more int) {
	high, last := cl.most, int32(-1) // the others come after these
	if k := len(cl.order); k > 0 {
		last = cl.order[k-1]
		high = cl.Points[last]
	}
	least := 0.0
	if cl.count-len(cl.order) > 4*more {
		least = cl.split(high, last, more)
	}
	r := cl.buffer
	r.work += int64(len(cl.Points))
	r.list = r.list[:0]
	for n, v := range cl.Points {
		if v >= least && (v < high || v == high && int32(n) > last) {
			r.list = append(r.list, ranked{v, int32(n)})
		}
	}
	r.byPoints()
	for _, c := range r.list {
		cl.order = append(cl.order, c.node)
	}
}

// split returns a threshold that at least so many of the candidates after the last reach.
func (cl *Class) split(high float64, last int32, more int) float64 {
	const steps = 1024
	scale := (steps - 1) / (high - cl.least)
	if math.IsInf(scale, 1) { // all but equal
		return 0
	}
	var least [steps]float64 // points on each step, and how many have them; a step never falls as points rise
	var on [steps]int
	for n, v := range cl.Points {
		if v >= 0 && (v < high || v == high && int32(n) > last) {
			i := int((v - cl.least) * scale)
			if on[i] == 0 || v < least[i] {
				least[i] = v
			}
			on[i]++
		}
	}
	cl.buffer.work += int64(len(cl.Points))
	i := steps
	for more > 0 {
		i--
		more -= on[i]
	}
	return least[i]
}

// sortBuffer is memory for sorting that the classes share.
type sortBuffer struct {
	list, spare []ranked
	work        int64 // nodes examined so far
}

// ranked is a candidate with its points.
type ranked struct {
	points float64
	node   int32
}

// byPoints sorts the list, which comes in order of node, by falling points, in linear time (radix sort, least digit
// first: the bits of floats that are not negative are in the order of the floats).
func (r *sortBuffer) byPoints() {
	r.spare = slices.Grow(r.spare[:0], len(r.list))[:len(r.list)]
	r.work += 8 * int64(len(r.list))
	for shift := 0; shift < 64; shift += 8 {
		digit := func(c ranked) int { return 255 - int(byte(math.Float64bits(c.points)>>shift)) }
		var next [257]int // where the next candidate with a digit goes
		for _, c := range r.list {
			next[digit(c)+1]++
		}
		for i := 1; i < len(next); i++ {
			next[i] += next[i-1]
		}
		for _, c := range r.list {
			d := digit(c)
			r.spare[next[d]] = c
			next[d]++
		}
		r.list, r.spare = r.spare, r.list
	}
}
