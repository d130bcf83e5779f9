package placement

import (
	"fmt"
	"strings"
)

// amountConstraint is the constraint that what a component takes of something is free on its node. The others on the
// node take from the same, so it also holds for all of them together, see remainder.
type amountConstraint interface {
	constraint
	// demand calls add for each amount that is not 0, by key where the kind has several, in order of key.
	demand(r *request, add func(key string, amount int64))
	// free returns how much of the key the node has left for this problem.
	free(n *nodeInfo, key string) int64
	// shortage describes what the request needs of the key on the node, with what others of Littoral hold of it.
	shortage(r *request, n *nodeInfo, key string) shortage
	// text formats an amount, and bare does so after another one, without repeating the unit.
	text(key string, v int64) string
	bare(v int64) string
	// unit is what a price is shown for, and how many of the units of amounts that is.
	unit() (name string, amount float64)
	// lower changes what the component asks for.
	lower(what shortage, to int64) change
}

// dim is one thing that nodes have a limited amount of.
type dim struct {
	kind amountConstraint
	key  string // device path or resource key
}

// shortage is one amount that a component needs on one node, with the free part and the holders of the rest.
type shortage struct {
	dim
	need, free int64
	reported   bool // the node says how much it has in all: whole and other
	whole      int64
	other      int64
	held       []holding
}

// holding is a part of a node's capacity that someone uses.
type holding struct {
	by     string
	how    string // "reserved by" or "taken by"
	amount int64
}

// maxHolders is how many holders a detail names; the others are counted.
const maxHolders = 5

// failure describes the shortage: "needs 4 cores, 2.5 free of 8, 3 reserved by shop/web".
func (c *shortage) failure() Failure {
	f := Failure{
		Rule: c.kind.rule(), Key: c.key, Needed: c.kind.text(c.key, c.need), Available: c.kind.text(c.key, c.free),
	}
	if c.reported && c.whole == 0 {
		f.Available = "unknown"
		f.Detail = fmt.Sprintf("needs %s, the node does not report how much %s it has", f.Needed, f.Rule)
		return f
	}
	parts := []string{"needs " + f.Needed}
	if c.reported {
		parts = append(parts, fmt.Sprintf("%s free of %s", c.kind.bare(c.free), c.kind.bare(c.whole)))
	} else {
		parts = append(parts, c.kind.bare(c.free)+" free")
	}
	if c.other > 0 {
		parts = append(parts, c.kind.bare(c.other)+" used by others")
	}
	for i, h := range c.held {
		if i == maxHolders {
			parts = append(parts, fmt.Sprintf("and %d more", len(c.held)-maxHolders))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %s %s", c.kind.bare(h.amount), h.how, h.by))
	}
	f.Detail = strings.Join(parts, ", ")
	return f
}

// reserve adds what the reservations of the node hold.
func (c *shortage) reserve(n *nodeInfo, amount func(*Reservation) int64) {
	for i := range n.Reserved {
		if v := amount(&n.Reserved[i]); v > 0 {
			c.held = append(c.held, holding{by: n.Reserved[i].Holder, how: "reserved by", amount: v})
		}
	}
}

// remainder: what the rest of the plan leaves free on the node must suffice. Its failures are those of the kinds of
// amounts, and so are their relaxations.
type remainder struct{}

func (remainder) rule() Rule { return "" }

func (remainder) broken(s *state, c, n int32, add func(Rule)) {
	for _, d := range s.m.ClassOf(c).Demand {
		if d.Amount > s.Free(n, d.Dim) {
			add(s.m.dims[d.Dim].kind.rule())
		}
	}
}

func (remainder) why(s *state, c, n int32) []Failure {
	var out []Failure
	for _, d := range s.m.ClassOf(c).Demand {
		if d.Amount > s.Free(n, d.Dim) {
			short := s.shortage(c, n, d.Dim)
			out = append(out, short.failure())
		}
	}
	return out
}

func (remainder) relax(*misfit, Failure) change { return change{} }

// shortage returns one amount on the node, with the shares of other components in the plan.
func (s *state) shortage(c, n int32, d int) shortage {
	what := s.m.dims[d]
	out := what.kind.shortage(s.m.request(c), &s.m.nodes[n], what.key)
	out.free = s.Free(n, d)
	for _, x := range s.On(n) {
		for _, a := range s.m.ClassOf(x).Demand {
			if a.Dim == d {
				out.held = append(out.held, holding{by: s.m.called(x, c), how: "taken by", amount: a.Amount})
			}
		}
	}
	return out
}

// lowerAmount asks for what the rest of the plan leaves free.
func lowerAmount(at *misfit, kind amountConstraint, f Failure) change {
	for d, what := range at.m.dims {
		if what.kind == kind && what.key == f.Key {
			left := at.s.shortage(at.c, at.n, d)
			return kind.lower(left, left.free)
		}
	}
	return change{}
}
