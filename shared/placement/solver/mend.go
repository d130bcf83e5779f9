package solver

import "slices"

// Effort of mending.
const (
	mendPart = 12 // of the whole budget, this part
	mendMost = 10 // components that are placed anew together
)

// mend looks for a solution near what runs, where the orders of starts end far from it: one medium that is short of a little may
// leave a component without a place, and then others move for it, and others for them. It begins with all that may stay where it is, by
// the routes that it takes now. Again and again a component that has left its place, or has none, is placed anew together with some that
// its channels join it to, until the work is spent (Shaw, Using constraint programming and local search methods to solve vehicle routing
// problems, 1998). Its numbers are pseudo-random from one fixed seed.
func (s *State) mend(sol *Solution, order []int32) {
	m := s.m
	near := Solution{PlacedBound: sol.PlacedBound}
	s.clear()
	s.placeAtHome()
	s.greedy(order)
	near.improveTo(s)
	d := dice(seed)
	for until := s.work + m.Budget/mendPart; s.work < until; {
		astray := m.astray(near.At)
		if len(astray) == 0 {
			break
		}
		set := s.joined(astray[d.below(len(astray))], 1+d.below(mendMost), &d)
		for _, c := range set {
			if s.At[c] >= 0 {
				s.Remove(c)
			}
		}
		for _, c := range set {
			if n, _ := s.best(c); n >= 0 {
				s.Put(c, n)
			}
		}
		for _, c := range astray { // perhaps there is room now
			if s.At[c] < 0 {
				if n, _ := s.best(c); n >= 0 {
					s.Put(c, n)
				}
			}
		}
		s.work += int64(len(s.At))
		if !near.improveTo(s) {
			s.resetTo(&near)
		}
	}
	s.resetTo(&near)
	sol.improveTo(s)
}

// astray are the components that have no place, or another than they had; those that run nowhere yet only without a place.
func (m *Model) astray(at []int32) (out []int32) {
	for c, n := range at {
		if n < 0 || len(m.Components[c].Home) > 0 && !m.IsHome(int32(c), n) {
			out = append(out, int32(c))
		}
	}
	return out
}

// leaving counts the components that may stay and do not.
func (m *Model) leaving(at []int32) (count int) {
	for _, c := range m.astray(at) {
		if len(m.Components[c].Home) > 0 {
			count++
		}
	}
	return count
}

// joined returns a component and others that channels join to it, directly or over others, so many at most. The order is random, but
// for the first.
func (s *State) joined(c int32, most int, d *dice) []int32 {
	m := s.m
	set := []int32{c}
	for next := 0; next < len(set) && len(set) < most; next++ {
		for _, i := range m.Components[set[next]].Channels {
			other := m.Channels[i].From
			if other == set[next] {
				other = m.Channels[i].To
			}
			if len(set) < most && d.below(3) > 0 && !slices.Contains(set, other) {
				set = append(set, other)
			}
		}
	}
	for i := len(set) - 1; i > 1; i-- {
		k := 1 + d.below(i)
		set[i], set[k] = set[k], set[i]
	}
	return set
}
