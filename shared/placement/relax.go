package placement

import (
	"cmp"
	"fmt"
	"slices"
)

// Limits that keep the cost of relaxations of large problems acceptable.
const (
	maxVerified    = 20_000  // components times nodes up to which a relaxation is verified by solving the problem again
	maxUnplaced    = 32      // number of components without a place up to which it is verified
	verifiedBudget = 200_000 // work units of each verification
	maxRelaxed     = 200_000 // nodes examined, over all components without a place
)

// change is one requirement to lower or drop, with the function that does it and its cost.
type change struct {
	Change
	cost  float64 // 0..1 for a part of an amount, 1 for a dropped rule, more for a deliberate exclusion
	apply func(p *Problem, i int)
}

// relax returns a smallest set of changes that gives an unplaced component a place, or nil if no change of its
// requirements can, since every node is stale or accepts no work.
//
// On one node, exactly the failed requirements must change, each down to what the node has. The node with the fewest
// changes is chosen, then the one with the lowest cost, then the smaller target; only some nodes are examined if a
// large problem leaves many components without a place. No smaller set is enough with the other components in their
// places. On a small problem each change is then left out in turn and the whole problem is solved again: a change that
// proves unnecessary, since the others can make room, is dropped.
func (m *model) relax(s *state, c int32) *Relaxation {
	changes, out := m.relaxation(s, c)
	if out == nil {
		return nil
	}
	for _, ch := range changes {
		out.Changes = append(out.Changes, ch.Change)
	}
	return out
}

func (m *model) relaxation(s *state, c int32) ([]change, *Relaxation) {
	var best []change
	bestNode, bestCost := int32(-1), 0.0
	unplaced := len(m.comps) - s.Placed()
	for _, n := range m.promising(c, -1, max(4, maxRelaxed/unplaced)) {
		changes, ok := m.changes(s, c, n, len(best))
		if !ok || len(changes) == 0 {
			continue
		}
		var cost float64
		for _, ch := range changes {
			cost += ch.cost
		}
		if bestNode < 0 || cmp.Or(cmp.Compare(len(changes), len(best)), cmp.Compare(cost, bestCost),
			cmp.Compare(n, bestNode)) < 0 {
			best, bestNode, bestCost = changes, n, cost
		}
	}
	if bestNode < 0 {
		return nil, nil
	}
	out := &Relaxation{Target: m.nodes[bestNode].Target()}
	if len(m.comps)*len(m.nodes) <= maxVerified && unplaced <= maxUnplaced {
		best, out.Verified = m.dropUnneeded(c, s.Placed(), best, out)
	}
	return best, out
}

// dropUnneeded drops changes that the solved problem does not need, and reports whether the rest is proven to work.
func (m *model) dropUnneeded(c int32, placed int, changes []change, out *Relaxation) ([]change, bool) {
	index := m.comps[c].index
	sure := true // every negative answer was proven
	works := func(cs []change) bool {
		p := *m.p
		p.Components = slices.Clone(p.Components)
		p.Spreads = slices.Clone(p.Spreads)
		p.Affinities = slices.Clone(p.Affinities)
		p.Groups = slices.Clone(p.Groups)
		p.Channels = slices.Clone(p.Channels)
		p.Budget = verifiedBudget
		for _, ch := range cs {
			ch.apply(&p, index)
		}
		plan, err := Place(p)
		if err != nil || plan.Placed <= placed || !plan.Assignments[index].Placed {
			sure = sure && err == nil && plan.PlacedBound <= placed
			return false
		}
		out.Target = plan.Assignments[index].Target
		return true
	}
	target := out.Target
	if !works(changes) {
		out.Target = target
		return changes, false
	}
	for i := 0; i < len(changes) && len(changes) > 1; {
		rest := slices.Delete(slices.Clone(changes), i, i+1)
		if works(rest) {
			changes = rest
		} else {
			i++
		}
	}
	return changes, sure
}

// misfit is a component without a place and a node that it does not fit on, with the others in their places.
type misfit struct {
	m       *model
	s       *state
	c, n    int32
	request *request
	node    *nodeInfo
}

// changes returns what would have to change for the component to fit on the node, one entry per failure; false if no
// requirement of the component can help, or if more than most changes would be needed (0 for no limit).
func (m *model) changes(s *state, c, n int32, most int) ([]change, bool) {
	at := &misfit{m: m, s: s, c: c, n: n, request: m.request(c), node: &m.nodes[n]}
	if !(unschedulable{}).admits(at.request, at.node) || !(freshness{}).admits(at.request, at.node) {
		return nil, false
	}
	fs := s.failures(c, n)
	fs = slices.CompactFunc(fs, func(a, b Failure) bool { // several spreads of one kind are widened together
		return a.Rule == b.Rule && a.of() == b.of()
	})
	if most > 0 && len(fs) > most {
		return nil, false
	}
	out := make([]change, 0, len(fs))
	for _, f := range fs {
		out = append(out, relaxed(at, f))
	}
	return out, true
}

// drop gives up a whole requirement.
func drop(what, from string, cost float64, do func(*Component)) change {
	return change{
		Change: Change{From: from, To: "none", Detail: fmt.Sprintf("drop %s (%s)", what, from)}, cost: cost,
		apply: func(p *Problem, i int) { do(&p.Components[i]) },
	}
}

// reduce lowers an amount to what there is.
func reduce(what string, from, to int64, text func(int64) string, do func(*Component, int64)) change {
	out := change{
		Change: Change{From: text(from), To: text(to)}, cost: lost(float64(from), float64(to)),
		apply: func(p *Problem, i int) { do(&p.Components[i], to) },
	}
	out.Detail = fmt.Sprintf("lower %s from %s to %s", what, out.From, out.To)
	if to == 0 {
		out.To = "none"
		out.Detail = fmt.Sprintf("ask for no %s instead of %s", what, out.From)
	}
	return out
}

// lost is by how much b is smaller than a, as a share 0..1, for comparing changes.
func lost(a, b float64) float64 {
	if a <= 0 {
		return 0
	}
	return max(0, min(1, (a-b)/a))
}

// without returns a copy of the map without one key.
func without[V any](m map[string]V, key string) map[string]V {
	out := make(map[string]V, len(m))
	for k, v := range m {
		if k != key {
			out[k] = v
		}
	}
	return out
}
