package flow

// rules are the compared ways to find an entering arc; Solve uses the block search.
var rules = map[string]func(*Solver) int32{
	"block search":   blockSearch,
	"first eligible": firstEligible,
	"best eligible":  bestEligible,
	"candidate list": (&candidates{}).next,
}

// firstEligible takes the next arc that can enter.
func firstEligible(s *Solver) int32 {
	for range s.arcs {
		if s.at >= len(s.arcs) {
			s.at = 0
		}
		s.at++
		if reducedCost(s, int32(s.at-1)) < 0 {
			return int32(s.at - 1)
		}
	}
	return -1
}

// bestEligible is Dantzig's rule.
func bestEligible(s *Solver) int32 {
	best, found := int64(0), int32(-1)
	for l := range s.arcs {
		if c := reducedCost(s, int32(l)); c < best {
			best, found = c, int32(l)
		}
	}
	return found
}

// candidates collects arcs that can enter, and takes the best of them several times before it collects again (Mulvey,
// Pivot strategies for primal-simplex network codes, 1978).
type candidates struct {
	list []int32
	uses int
}

func (c *candidates) next(s *Solver) int32 {
	most := max(10, len(s.arcs)/400)
	if c.uses > 0 && len(c.list) > 0 {
		c.uses--
		if l := c.best(s); l >= 0 {
			return l
		}
	}
	c.list = c.list[:0]
	for range s.arcs {
		if s.at >= len(s.arcs) {
			s.at = 0
		}
		if reducedCost(s, int32(s.at)) < 0 {
			c.list = append(c.list, int32(s.at))
		}
		s.at++
		if len(c.list) == most {
			break
		}
	}
	c.uses = most / 10
	return c.best(s)
}

func (c *candidates) best(s *Solver) int32 {
	best, found, kept := int64(0), int32(-1), 0
	for _, l := range c.list {
		r := reducedCost(s, l)
		if r >= 0 {
			continue
		}
		c.list[kept] = l
		kept++
		if r < best {
			best, found = r, l
		}
	}
	c.list = c.list[:kept]
	return found
}

func reducedCost(s *Solver, l int32) int64 {
	a := &s.arcs[l]
	return a.cost + s.pi[a.tail] - s.pi[a.head]
}
