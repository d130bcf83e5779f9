package solver

import "slices"

// decision restricts one component to a range of labels, or excludes it from them.
type decision struct {
	before   *decision
	c        int32
	from, to int32
	in       bool
}

// restrict sets the masks of the dual according to the decisions, and excludes labels that do not fit together with
// components that have only one node left. It reports whether every component has a label left.
func (d *dual) restrict(last *decision) bool {
	m := d.m
	if d.mask == nil {
		d.mask, d.left = make([][]bool, len(m.Components)), make([]int32, len(m.Components))
		for c := range d.mask {
			d.mask[c] = make([]bool, len(d.node))
		}
	}
	for c := range d.mask {
		d.left[c] = 0
		for l, v := range d.base[m.Components[c].Class] {
			if d.mask[c][l] = v > none; v > none {
				d.left[c]++
			}
		}
	}
	for x := last; x != nil; x = x.before {
		for l, ok := range d.mask[x.c] {
			if ok && (int32(l) >= x.from && int32(l) < x.to) != x.in {
				d.bar(x.c, int32(l))
			}
		}
	}
	s := m.newState(d.orch, 0)
	var queue []int32
	done := make([]bool, len(m.Components))
	for again := true; again; {
		again = false
		queue = queue[:0]
		for c := range d.mask {
			if d.left[c] == 0 && m.Classes[m.Components[c].Class].count > 0 && d.able(int32(c)) {
				return false
			}
			if d.left[c] == 1 && !done[c] {
				n := d.node[slices.Index(d.mask[c], true)]
				if !s.Fits(int32(c), n) {
					return false
				}
				done[c] = true
				s.Put(int32(c), n)
				queue = append(queue, int32(c))
			}
		}
		for _, c := range queue {
			l := d.label[s.At[c]]
			for e := range d.mask {
				if d.left[e] > 1 && d.mask[e][l] && !s.Fits(int32(e), s.At[c]) {
					d.bar(int32(e), l)
					again = true
				}
			}
		}
	}
	d.work += s.work + int64(len(d.mask)*len(d.node))/8
	return true
}

// able reports whether the component has a candidate among the labels.
func (d *dual) able(c int32) bool {
	return slices.ContainsFunc(d.base[d.m.Components[c].Class], func(v float64) bool { return v > none })
}

func (d *dual) bar(c, l int32) {
	d.mask[c][l] = false
	d.left[c]--
}
