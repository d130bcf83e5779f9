package solver

import (
	"cmp"
	"math"
	"slices"
)

// annealing improves a solution whose channels leave no single step open: it walks through placements that overload nodes and media,
// at a penalty, and takes worse ones with a probability that shrinks (Kirkpatrick, Gelatt and Vecchi, Optimization by simulated annealing,
// 1983). What is taken of nodes and media costs the prices of the relaxation, which also propose where to go. Its numbers are pseudo-random from one fixed seed, so equal problems walk alike. Every component has a place throughout;
// spreads, sets that keep apart and groups with one orchestrator are kept at each step.
type annealing struct {
	j    *joint
	m    *Model
	at   []int32
	via  []int32 // of each pair; NoRoute on one node, Unrouted without a route
	load []int64 // of nodes by dim
	used []int64 // of media

	over    float64 // by how much nodes and media are overloaded, in average demands
	faults  int     // how many are, and how many channels have no route
	value   float64
	on      [][]int32 // components on each node, by their number among j.comps
	strict  float64   // what a channel without a route counts as, many times
	paid    float64   // prices of what is taken
	spread  [][]int32
	penalty float64
	scale   float64   // what a component is worth at its best, on average
	warm    float64   // the temperature at first
	likely  [][]int32 // candidates of each component, the most promising first
	random  uint64
	bonds   []float64 // of each pair, how likely its ends move together
	moved   []int32   // memory for a step: what moves, where to, and where and by which routes it was
	target  []int32
	homes   []int32
	former  []int32

	best    float64
	found   bool
	bestAt  []int32
	bestVia []int32
}

// Effort of an annealing.
const (
	stepWork  = 12    // work units of a step
	stepsEach = 8_000 // most steps for each component
	stepsPair = 600   // and for each pair of components, where they are few
	adapt     = 500   // steps between changes of the temperature
	together  = 30    // percent of the steps that move what has to stay together
	looked    = 32    // most nodes of a site at which such a step looks, for each component
	missing   = 2.0   // overload that a channel without a route counts as at first, beside its bandwidth
)

// anneal improves the solution within some work, of which a walk takes less where that cools slowly enough.
func (s *State) anneal(j *joint, sol *Solution, work int64) {
	m := s.m
	for i := range m.Components {
		if m.Components[i].Limited {
			return
		}
	}
	a := &annealing{j: j, m: m, random: 0x9E3779B97F4A7C15}
	if !a.begin(sol) {
		return
	}
	steps := min(work/stepWork, min(stepsEach, stepsPair*int64(len(j.comps)))*int64(len(j.comps)))
	if j.settled {
		steps /= settledPart
	}
	done := func() bool { return a.found && m.rounded(sol.Bound) <= a.best+slack(a.best) }
	a.walk(steps*3/4, done)
	if !done() && !j.settled {
		// What a walk ends with is often worth more than any plan and overloads a little: that gets dear, and there is some warmth again.
		a.warm, a.penalty = 0.12*a.scale, 1.5*a.scale
		a.recount()
		a.walk(steps/4, done)
	}
	s.work += steps * stepWork
	if a.found {
		a.restore(s, a.bestAt, a.bestVia)
		sol.improveTo(s)
	}
	// Where it ends may be worth more, but for a few channels whose ends then have to find other places.
	a.restore(s, a.at, a.via)
	s.greedy(s.hardest())
	if s.Placed() == len(j.comps) {
		sol.improveTo(s)
	}
	s.resetTo(sol)
	whole := s.budget
	s.budget = s.work + work/4
	s.improve()
	s.budget = whole
	sol.improveTo(s)
}

// restore puts into the state what fits.
func (a *annealing) restore(s *State, at, of []int32) {
	s.clear()
	via := slices.Repeat([]int32{NoRoute}, len(a.m.Channels))
	for i := range a.j.pairs {
		via[a.j.pairs[i].channel] = of[i]
	}
	s.prefer(at, via)
	for c, n := range at {
		if n >= 0 && s.Fits(int32(c), n) {
			s.Put(int32(c), n)
		}
	}
}

// begin puts everything where the solution has it, and what has no place there at its most promising one.
func (a *annealing) begin(sol *Solution) bool {
	m, j := a.m, a.j
	a.at = slices.Repeat([]int32{-1}, len(m.Components))
	a.load, a.used = make([]int64, len(m.Free)), make([]int64, len(m.Media))
	a.on = make([][]int32, len(m.Nodes))
	a.strict = 1
	a.via = slices.Repeat([]int32{NoRoute}, len(j.pairs))
	a.spread = make([][]int32, len(m.Spreads))
	for i := range m.Spreads {
		a.spread[i] = make([]int32, m.Spreads[i].Domains)
	}
	a.likely = make([][]int32, len(j.comps))
	var scale float64
	j.charge()
	for i := range j.comps {
		for n, v := range j.gain[i] {
			if v > none {
				a.likely[i] = append(a.likely[i], int32(n))
			}
		}
		worth := j.belief[i]
		slices.SortStableFunc(a.likely[i], func(x, y int32) int { return cmp.Compare(worth[y], worth[x]) })
		if len(a.likely[i]) == 0 {
			return false
		}
		scale += m.ClassOf(j.comps[i]).most
	}
	a.scale = max(scale/float64(len(j.comps)), 1e-9)
	a.bond()
	a.warm, a.penalty = 0.3*a.scale, 0.3*a.scale
	if j.settled { // a move costs more than it can bring, and is better than what overloads
		a.warm, a.penalty = 0.06*(a.scale+m.MoveCost), a.scale+m.MoveCost
	}
	for i, c := range j.comps {
		n := sol.At[c]
		if home := m.Components[c].Home; j.settled && len(home) > 0 && !(n >= 0 && m.IsHome(c, n)) {
			n = home[0]
		}
		if n >= 0 && j.gain[i][n] > none && a.allowed(int32(i), n) {
			a.put(int32(i), n)
		}
	}
	for i, c := range j.comps {
		if a.at[c] >= 0 {
			continue
		}
		k := slices.IndexFunc(a.likely[i], func(n int32) bool { return a.allowed(int32(i), n) })
		if k < 0 {
			return false
		}
		a.put(int32(i), a.likely[i][k])
	}
	a.stayOnRoutes()
	if sol.Placed == len(j.comps) {
		a.best = sol.Value
	} else {
		a.best = math.Inf(-1)
	}
	return true
}

// stayOnRoutes gives the channels the routes that they take now, as far as both ends are where they have been: what does not fit any
// more is then overloaded, and nothing else.
func (a *annealing) stayOnRoutes() {
	for k := range a.j.pairs {
		now := a.m.Channels[a.j.pairs[k].channel].Now
		if from, to, ok := a.ends(int32(k)); ok && a.m.between(now, from, to) {
			a.carry(int32(k), from, to, -1)
			a.via[k] = now.Via
			a.carry(int32(k), from, to, 1)
		}
	}
}

// bond says for each pair how few pairs of sites it allows.
func (a *annealing) bond() {
	j := a.j
	for k := range j.pairs {
		ch := &a.m.Channels[j.pairs[k].channel]
		all, allowed := 0, 0
		for w := range j.ways {
			if w/j.sites == w%j.sites || len(j.at[w/j.sites]) == 0 || len(j.at[w%j.sites]) == 0 {
				continue
			}
			all++
			for r := range j.ways[w] {
				if ch.Allows(j.ways[w][r].route) {
					allowed++
					break
				}
			}
		}
		a.bonds = append(a.bonds, 1-float64(allowed)/float64(max(1, all)))
	}
}

func (a *annealing) next() uint64 {
	a.random ^= a.random << 13
	a.random ^= a.random >> 7
	a.random ^= a.random << 17
	return a.random
}

// below returns a number from 0 to n-1.
func (a *annealing) below(n int) int { return int((a.next() >> 33) % uint64(n)) }

func (a *annealing) part() float64 { return float64(a.next()>>11) / (1 << 53) }

// walk takes so many steps, or fewer if done says so.
func (a *annealing) walk(steps int64, done func() bool) {
	warm, cold := a.warm, 0.01*a.scale
	// A channel without a route counts little at first, else nothing moves past it, and more than anything in the end.
	stricter := math.Pow(20, 1/float64(max(1, steps/adapt)))
	cooling := math.Pow(cold/warm, 1/float64(max(1, steps/adapt)))
	for step := int64(0); step < steps; step++ {
		a.step(warm)
		if step%adapt == adapt-1 {
			a.strict *= stricter
			a.recount()
			warm *= cooling
			if done() {
				return
			}
		}
	}
}

// step tries one move: a component to a promising place or to one of its partners, two that change places, or components that
// have to stay together to another site, perhaps in exchange for those that one of them meets there.
func (a *annealing) step(warm float64) {
	j, m := a.j, a.m
	i := int32(a.below(len(j.comps)))
	c := j.comps[i]
	home := a.at[c]
	before := a.energy()
	a.moved, a.target = append(a.moved[:0], i), a.target[:0]
	if len(a.bonds) > 0 && a.below(100) < together {
		a.stepTogether(i, before, warm)
		return
	}
	kind := a.below(16)
	other := int32(-1)
	var to int32
	switch {
	case kind < 4 && len(j.of[i]) > 0: // to a partner, or near it
		e := j.of[i][a.below(len(j.of[i]))]
		p := &j.pairs[max(e, ^e)]
		partner := p.c
		if p.c == i {
			partner = p.d
		}
		to = a.at[j.comps[partner]]
		switch a.below(3) {
		case 0:
			site := j.at[m.Nodes[to].Site]
			to = site[a.below(len(site))]
		case 1:
			if on := a.on[to]; len(on) > 1 { // whoever is there makes room
				if other = on[a.below(len(on))]; other == partner || other == i {
					return
				}
			}
		}
	case kind < 6:
		if other = int32(a.below(len(j.comps))); other == i {
			return
		}
		to = a.at[j.comps[other]]
	case kind < 8:
		site := j.at[m.Nodes[home].Site]
		if to = site[a.below(len(site))]; j.settled && a.below(2) == 0 {
			to = home // by other routes, perhaps
		}
	default:
		u := a.part()
		to = a.likely[i][int(u*u*u*float64(len(a.likely[i])))]
	}
	if to == home && (!j.settled || other >= 0) || j.gain[i][to] == none || (other >= 0 && j.gain[other][home] == none) {
		return
	}
	a.target = append(a.target, to)
	if other >= 0 {
		a.moved, a.target = append(a.moved, other), append(a.target, home)
	}
	a.lift()
	a.land(before, warm)
}

// stepTogether moves a component with those at its site that its channels hold there.
func (a *annealing) stepTogether(i int32, before, warm float64) {
	j, m := a.j, a.m
	home := m.Nodes[a.at[j.comps[i]]].Site
	u := a.part()
	to := m.Nodes[a.likely[i][int(u*u*u*float64(len(a.likely[i])))]].Site
	if to == home {
		return
	}
	a.grow(0)
	first := len(a.moved)
	if a.below(3) == 0 {
		site := j.at[to]
		if on := a.on[site[a.below(len(site))]]; len(on) > 0 {
			a.moved = append(a.moved, on[a.below(len(on))])
			a.grow(first)
		}
	}
	a.lift()
	for x, k := range a.moved {
		if x < first {
			a.target = append(a.target, a.roomiest(k, to))
		} else {
			a.target = append(a.target, a.roomiest(k, home))
		}
		n := a.target[x]
		if n < 0 || !a.allowed(k, n) {
			a.undo(x)
			return
		}
		a.put(k, n)
	}
	a.judge(before, warm)
}

// grow adds to what moves, from the one on, those of the same site that channels hold there: the fewer pairs of sites a channel
// allows, the likelier.
func (a *annealing) grow(from int) {
	j, m := a.j, a.m
	home := m.Nodes[a.at[j.comps[a.moved[from]]]].Site
	for x := from; x < len(a.moved); x++ {
		i := a.moved[x]
		for _, e := range j.of[i] {
			k := max(e, ^e)
			partner := j.pairs[k].c
			if partner == i {
				partner = j.pairs[k].d
			}
			if m.Nodes[a.at[j.comps[partner]]].Site == home && !slices.Contains(a.moved, partner) && a.part() < a.bonds[k] {
				a.moved = append(a.moved, partner)
			}
		}
	}
}

// roomiest returns the node of a site where a component that was taken is worth most, less the penalty for what it overloads.
func (a *annealing) roomiest(i, site int32) int32 {
	j, m := a.j, a.m
	best, most := int32(-1), none
	demand := m.ClassOf(j.comps[i]).Demand
	nodes := j.at[site]
	if len(nodes) > looked { // some of them, others the next time
		from := a.below(len(nodes) - looked + 1)
		nodes = nodes[from : from+looked]
	}
	for _, n := range nodes {
		v := j.gain[i][n]
		if v == none {
			continue
		}
		for _, d := range demand {
			k := int(n)*m.Dims + d.Dim
			v -= j.y[k] * float64(d.Amount) / j.units[d.Dim]
			if left := m.Free[k] - a.load[k]; left < d.Amount {
				v -= a.penalty * float64(d.Amount-max(0, left)) / j.units[d.Dim]
			}
		}
		if v > most {
			best, most = n, v
		}
	}
	return best
}

// lift takes what moves, and keeps where it was and by which routes.
func (a *annealing) lift() {
	a.former, a.homes = a.former[:0], a.homes[:0]
	for _, i := range a.moved {
		a.homes = append(a.homes, a.at[a.j.comps[i]])
		for _, e := range a.j.of[i] {
			a.former = append(a.former, a.via[max(e, ^e)])
		}
	}
	for _, i := range a.moved {
		a.take(i)
	}
}

// land puts what was lifted where it is to go, if that is allowed and it is worth it; else back.
func (a *annealing) land(before, warm float64) {
	for x, i := range a.moved {
		if !a.allowed(i, a.target[x]) {
			a.undo(x)
			return
		}
		a.put(i, a.target[x])
	}
	a.judge(before, warm)
}

// judge keeps what has moved, or takes it back.
func (a *annealing) judge(before, warm float64) {
	change := a.energy() - before
	if change >= 0 || a.part() < math.Exp(change/warm) {
		if a.faults == 0 && a.value > a.best+slack(a.best) {
			a.remember()
		}
		return
	}
	a.undo(len(a.moved))
}

// undo takes as many as have landed, and puts all back that was lifted.
func (a *annealing) undo(landed int) {
	for _, i := range a.moved[:landed] {
		a.take(i)
	}
	routes := a.former
	for x, i := range a.moved {
		a.back(i, a.homes[x], routes[:len(a.j.of[i])])
		routes = routes[len(a.j.of[i]):]
	}
}

func (a *annealing) energy() float64 { return a.value - a.paid - a.penalty*a.over }

func (a *annealing) remember() {
	a.best, a.found = a.value, true
	a.bestAt, a.bestVia = append(a.bestAt[:0], a.at...), append(a.bestVia[:0], a.via...)
}

// allowed reports whether a component without a place may be at the node by the rules that have no penalty.
func (a *annealing) allowed(i, n int32) bool {
	m := a.m
	c := a.j.comps[i]
	comp := &m.Components[c]
	for _, x := range comp.Apart {
		if a.at[x] == n {
			return false
		}
	}
	for _, k := range comp.Spreads {
		if sp := &m.Spreads[k]; a.spread[k][sp.Domain[n]] >= sp.Limit {
			return false
		}
	}
	if g := &m.Groups[comp.Group]; g.OneOrchestrator {
		for _, x := range g.Members {
			if at := a.at[x]; at >= 0 && m.Nodes[at].Orchestrator != m.Nodes[n].Orchestrator {
				return false
			}
		}
	}
	return true
}

// put places a component, and gives its channels routes.
func (a *annealing) put(i, n int32) {
	a.place(i, n, 1)
	for _, e := range a.j.of[i] {
		k := max(e, ^e)
		if from, to, ok := a.ends(k); ok {
			a.via[k] = a.choose(k, from, to)
			a.carry(k, from, to, 1)
		}
	}
}

// back places a component as it was.
func (a *annealing) back(i, n int32, routes []int32) {
	a.place(i, n, 1)
	for x, e := range a.j.of[i] {
		k := max(e, ^e)
		if from, to, ok := a.ends(k); ok {
			a.via[k] = routes[x]
			a.carry(k, from, to, 1)
		}
	}
}

// take removes a component, and its channels from their routes.
func (a *annealing) take(i int32) {
	for _, e := range a.j.of[i] {
		k := max(e, ^e)
		if from, to, ok := a.ends(k); ok {
			a.carry(k, from, to, -1)
		}
		a.via[k] = NoRoute
	}
	a.place(i, a.at[a.j.comps[i]], -1)
}

// place counts a component's points and demands at a node, or no longer.
func (a *annealing) place(i, n int32, sign int64) {
	m := a.m
	c := a.j.comps[i]
	comp := &m.Components[c]
	worth := m.points(c, n)
	for x := range m.Edges[c] {
		e := &m.Edges[c][x]
		if at := a.at[e.To]; at >= 0 {
			worth += e.Weight * m.Closeness(e, n, at)
		}
	}
	a.value += float64(sign) * worth
	for _, d := range m.ClassOf(c).Demand {
		k := int(n)*m.Dims + d.Dim
		a.paid += a.j.y[k] * float64(sign*d.Amount) / a.j.units[d.Dim]
		a.load[k] = a.shift(a.load[k], sign*d.Amount, m.Free[k], a.j.units[d.Dim])
	}
	for _, k := range comp.Spreads {
		a.spread[k][m.Spreads[k].Domain[n]] += int32(sign)
	}
	if a.at[c] = n; sign > 0 {
		a.on[n] = append(a.on[n], i)
		return
	}
	a.at[c] = -1
	on := a.on[n]
	on[slices.Index(on, i)] = on[len(on)-1]
	a.on[n] = on[:len(on)-1]
}

// shift changes a load and counts by how much it is too large.
func (a *annealing) shift(load, by, limit int64, unit float64) int64 {
	if load > limit {
		a.over -= float64(load-limit) / unit
		a.faults--
	}
	load += by
	if load > limit {
		a.over += float64(load-limit) / unit
		a.faults++
	}
	return load
}

// ends returns the nodes of a pair; ok is false if it takes no route, since an end has no place or both are on one node.
func (a *annealing) ends(k int32) (from, to int32, ok bool) {
	p := &a.j.pairs[k]
	from, to = a.at[a.j.comps[p.c]], a.at[a.j.comps[p.d]]
	return from, to, from >= 0 && to >= 0 && from != to
}

func (a *annealing) carry(k, from, to int32, sign int64) {
	p := &a.j.pairs[k]
	ch := &a.m.Channels[p.channel]
	if a.via[k] < 0 {
		a.over += float64(sign) * (missing + p.bandwidth) * a.strict
		a.faults += int(sign)
		return
	}
	w := int(a.m.Nodes[from].Site)*a.j.sites + int(a.m.Nodes[to].Site)
	for _, medium := range a.j.ways[w][a.via[k]].media {
		a.paid += float64(sign) * a.j.z[medium] * p.bandwidth
		a.used[medium] = a.shift(a.used[medium], sign*ch.Bandwidth, a.m.Media[medium], a.j.media)
	}
}

// choose returns the allowed route that overloads least, then the cheapest; Unrouted without one.
func (a *annealing) choose(k, from, to int32) int32 {
	j, m := a.j, a.m
	ch := &m.Channels[j.pairs[k].channel]
	w := int(m.Nodes[from].Site)*j.sites + int(m.Nodes[to].Site)
	best, least := Unrouted, math.Inf(1)
	for r := range j.ways[w] {
		way := &j.ways[w][r]
		if !ch.Allows(way.route) {
			continue
		}
		cost := 0.0
		for _, medium := range way.media {
			left := m.Media[medium] - a.used[medium]
			if left < ch.Bandwidth {
				cost += a.penalty * float64(ch.Bandwidth-max(0, left)) / j.media
			}
			cost += j.z[medium] * j.pairs[k].bandwidth
		}
		if cost < least {
			best, least = int32(r), cost
		}
	}
	return best
}

// recount sums up what is overloaded: what a channel without a route counts as has changed, and sums of many steps are rounded.
func (a *annealing) recount() {
	m, j := a.m, a.j
	a.over = 0
	for k, v := range a.load {
		a.over += float64(max(0, v-m.Free[k])) / j.units[k%m.Dims]
	}
	for k, v := range a.used {
		a.over += float64(max(0, v-m.Media[k])) / j.media
	}
	for k := range a.via {
		if a.via[k] == Unrouted {
			a.over += (missing + j.pairs[k].bandwidth) * a.strict
		}
	}
}
