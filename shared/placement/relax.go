package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
	unplaced := len(m.comps) - s.placed
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
		best, out.Verified = m.thin(c, s.placed, best, out)
	}
	return best, out
}

// thin drops changes that the solved problem does not need, and reports whether the rest is proven to work.
func (m *model) thin(c int32, placed int, changes []change, out *Relaxation) ([]change, bool) {
	index := m.comps[c].index
	sure := true // every negative answer was proven
	works := func(cs []change) bool {
		p := *m.p
		p.Components = slices.Clone(p.Components)
		p.Spreads = slices.Clone(p.Spreads)
		p.Affinities = slices.Clone(p.Affinities)
		p.Groups = slices.Clone(p.Groups)
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

// changes returns what would have to change for the component to fit on the node, one entry per failure; false if no
// requirement of the component can help, or if more than most changes would be needed (0 for no limit).
func (m *model) changes(s *state, c, n int32, most int) ([]change, bool) {
	h := &m.nodes[n]
	want := m.classes[m.comps[c].class].want
	if !schedulable(want, h) || !fresh(want, h) {
		return nil, false
	}
	fs := s.failuresBeside(c, n)
	fs = slices.CompactFunc(fs, func(a, b Failure) bool { // several spreads of one kind are widened together
		return a.Rule == b.Rule && a.Key == b.Key
	})
	if most > 0 && len(fs) > most {
		return nil, false
	}
	out := make([]change, 0, len(fs))
	for _, f := range fs {
		ch := m.change(s, c, n, f)
		ch.Rule, ch.Key = f.Rule, f.Key
		out = append(out, ch)
	}
	return out, true
}

// change returns the change that removes one failure.
func (m *model) change(s *state, c, n int32, f Failure) change {
	h, want := &m.nodes[n], m.classes[m.comps[c].class].want
	switch f.Rule {
	case RuleTarget:
		return drop("the fixed place", places(want.Targets), 1, func(x *Component) { x.Targets = nil })
	case RuleExcluded:
		return drop("the exclusion", f.Needed, 2, func(x *Component) {
			x.Excluded = slices.DeleteFunc(slices.Clone(x.Excluded), func(t Target) bool { return t.matches(h.Node) })
		})
	case RuleOrchestrator:
		return drop("the orchestrator", strings.Join(want.Orchestrators, ", "), 1,
			func(x *Component) { x.Orchestrators = nil })
	case RuleEngine:
		return drop("the engine", strings.Join(want.Engines, ", "), 1, func(x *Component) { x.Engines = nil })
	case RuleArchitecture:
		return drop("the architecture", want.arch, 1, func(x *Component) { x.Architecture = "" })
	case RuleLabel:
		return drop("the label", f.Needed, 1, func(x *Component) { x.Labels = without(x.Labels, f.Key) })
	case RuleSecurity:
		return m.lowerSecurity(want, h)
	case RuleCPUUsage:
		return raiseUsage("cpu", want.MaxCPUUsage, h.CPUUsage, func(x *Component, v float64) { x.MaxCPUUsage = v })
	case RuleMemoryUsage:
		return raiseUsage("memory", want.MaxMemoryUsage, h.MemoryUsage,
			func(x *Component, v float64) { x.MaxMemoryUsage = v })
	case RuleFreeMemory:
		return reduce("free memory", want.MinFreeMemory, h.freeMemory, size,
			func(x *Component, v int64) { x.MinFreeMemory = v })
	case RuleCPU, RuleMemory, RuleDevice, RuleResource:
		return m.lowerAmount(s, c, n, f)
	case RuleAntiAffinity:
		return m.dropApart(f.Key)
	case RuleSpread:
		return m.widen(s, c, n, f.Key)
	case RuleLatency:
		return m.unlimit("latency", f, func(a *Affinity) { a.MaxLatency = 0 })
	case RuleBandwidth:
		return m.unlimit("bandwidth", f, func(a *Affinity) { a.Bandwidth = 0 })
	default: // RuleOneOrchestrator
		g := m.comps[c].group
		return change{
			Change: Change{From: "one orchestrator", To: "none", Detail: "allow several orchestrators"},
			cost:   1, apply: func(p *Problem, i int) {
				p.Components[i].Shared = nil
				if g == 0 {
					p.OneOrchestrator = false
				} else {
					p.Groups[g-1].OneOrchestrator = false
				}
			},
		}
	}
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

func plain(v int64) string { return strconv.FormatInt(v, 10) }

func (m *model) lowerAmount(s *state, c, n int32, f Failure) change {
	want := m.classes[m.comps[c].class].want
	d := slices.Index(m.dims, dim{f.Rule, f.Key})
	left := s.capacity(want, n, d)
	switch f.Rule {
	case RuleCPU:
		return reduce("cpu", want.CPU, left.free, cores, func(x *Component, v int64) { x.CPU = v })
	case RuleMemory:
		return reduce("memory", want.Memory, left.free, size, func(x *Component, v int64) { x.Memory = v })
	case RuleDevice:
		return reduce("device "+f.Key, left.need, left.free, plain, func(x *Component, v int64) {
			kept := int64(0)
			x.Devices = slices.DeleteFunc(slices.Clone(x.Devices), func(path string) bool {
				if path == f.Key {
					kept++
				}
				return path == f.Key && kept > v
			})
		})
	default:
		return reduce(f.Key, left.need, left.free, plain, func(x *Component, v int64) {
			rest := without(x.Resources, f.Key)
			rest[f.Key] = v
			x.Resources = rest
		})
	}
}

func (m *model) lowerSecurity(want *request, h *have) change {
	if h.SCA == nil || *h.SCA < 1 {
		return drop("the security score", fmt.Sprintf("at least %d", want.MinSecurity), 1,
			func(x *Component) { x.MinSecurity = 0 })
	}
	return reduce("the security score", int64(want.MinSecurity), int64(*h.SCA), plain,
		func(x *Component, v int64) { x.MinSecurity = int(v) })
}

func raiseUsage(what string, from, to float64, do func(*Component, float64)) change {
	if to > 1 {
		return drop("the "+what+" usage limit", percent(from), 1, func(x *Component) { do(x, 0) })
	}
	return change{
		Change: Change{
			From: percent(from), To: percent(to),
			Detail: fmt.Sprintf("raise the %s usage limit from %s to %s", what, percent(from), percent(to)),
		},
		cost:  lost(1-from, 1-to),
		apply: func(p *Problem, i int) { do(&p.Components[i], to) },
	}
}

// dropApart allows two components on one node, whichever of them declared the anti-affinity.
func (m *model) dropApart(id string) change {
	return change{
		Change: Change{From: "apart from " + id, To: "none", Detail: "allow it on the node of " + id}, cost: 1,
		apply: func(p *Problem, i int) {
			self := p.Components[i].ID
			for k := range p.Components {
				x := &p.Components[k]
				x.AntiAffinity = slices.DeleteFunc(slices.Clone(x.AntiAffinity), func(other string) bool {
					return (k == i && other == id) || (x.ID == id && other == self)
				})
			}
		},
	}
}

// lost is by how much b is smaller than a, as a share 0..1, for comparing changes.
func lost(a, b float64) float64 {
	if a <= 0 {
		return 0
	}
	return max(0, min(1, (a-b)/a))
}

// unlimit drops a limit on the link to a partner.
func (m *model) unlimit(what string, f Failure, do func(*Affinity)) change {
	return change{
		Change: Change{From: f.Needed, To: "none", Detail: fmt.Sprintf("drop the %s limit to %s", what, f.Key)}, cost: 1,
		apply: func(p *Problem, i int) {
			self := p.Components[i].ID
			for k := range p.Affinities {
				if a := &p.Affinities[k]; (a.A == self && a.B == f.Key) || (a.B == self && a.A == f.Key) {
					do(a)
				}
			}
		},
	}
}

// widen lets one more member of every full spread of that kind share the node's domain.
func (m *model) widen(s *state, c, n int32, by string) change {
	out := change{cost: 1}
	limits := make(map[*Spread]int)
	for _, i := range m.comps[c].spreads {
		sp := &m.spreads[i]
		if has := s.spread[i][sp.domain[n]]; sp.By == by && has >= sp.limit {
			limits[sp.Spread] = int(has) + 1
			out.From = fmt.Sprintf("at most %d per %s", sp.limit, by)
			out.To = fmt.Sprintf("at most %d per %s", has+1, by)
		}
	}
	out.Detail = fmt.Sprintf("allow %s instead of %s", strings.TrimPrefix(out.To, "at most "), out.From)
	out.apply = func(p *Problem, _ int) {
		for k := range p.Spreads {
			if most, ok := limits[&m.p.Spreads[k]]; ok {
				p.Spreads[k].Max, p.Spreads[k].MaxShare = max(most, p.Spreads[k].Max), 0
			}
		}
	}
	return out
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
