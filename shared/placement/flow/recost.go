package flow

import "slices"

// recost applies the costs that have changed since load, and reports whether nothing else has changed.
func (s *Solver) recost() bool {
	p := s.problem
	if !s.loaded || s.shape != p.shape || s.partial != s.Partial {
		return false
	}
	changed := p.recosted[s.recosted:]
	for _, id := range changed {
		if magnitude(p.arcs[id].cost) > s.most {
			return false
		}
	}
	if len(changed) == 0 {
		return true
	}
	if s.fixes {
		before := s.fixed
		if s.loadFixed() != nil {
			return false
		}
		s.ledger.cost.subWide(before)
		s.ledger.cost.addWide(s.fixed)
	}
	bent := s.bends[:0]
	for _, id := range changed {
		l := s.slotOf[id]
		if j := jointOf(l); j >= 0 {
			if s.joined[j].cost != p.arcs[id].cost {
				s.joined[j].cost = p.arcs[id].cost
				bent = append(bent, j)
			}
		} else if l >= 0 {
			s.setCost(l)
		}
	}
	s.bends = bent
	s.bend(bent)
	s.recosted = len(p.recosted)
	return true
}

// bend applies the costs of the given joints to everything behind them: further joints, and slots. O(their number).
func (s *Solver) bend(joints []int32) {
	if len(joints) == 0 {
		return
	}
	if !s.bearing.built {
		s.bearing.build(s)
	}
	slices.Sort(joints) // each after the one beyond it
	done := s.bearing.done
	s.bearing.moved = s.bearing.moved[:0]
	for _, first := range joints {
		if done[first] {
			continue // with one beyond it
		}
		stack := append(s.bearing.stack[:0], first)
		for len(stack) > 0 {
			i := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			j := &s.joined[i]
			s.offset[j.v] = s.offset[j.beyond] + j.cost
			done[i] = true
			s.bearing.moved = append(s.bearing.moved, i)
			for _, on := range s.bearing.on(i) {
				if on >= 0 {
					s.setCost(on)
				} else {
					stack = append(stack, ^on)
				}
			}
		}
		s.bearing.stack = stack
	}
	for _, i := range s.bearing.moved {
		done[i] = false
	}
	s.ledger.joints = append(s.ledger.joints, s.bearing.moved...)
}

// setCost computes the cost of a slot from its arcs.
func (s *Solver) setCost(l int32) {
	cost := s.slotCost(s.ids[l])
	if s.turned[l] {
		cost = -cost
	}
	more := cost - s.arcs[l].cost
	s.ledger.recost(s, l, more)
	s.arcs[l].cost = cost
	switch a := &s.arcs[l]; l { // a tree arc changes the potentials of all nodes beyond it
	case s.nodes[a.tail].arc:
		s.tilt[a.tail] -= more
	case s.nodes[a.head].arc:
		s.tilt[a.head] += more
	}
}

// tiltPotentials updates the potentials after setCost. O(nodes of the network).
func (s *Solver) tiltPotentials() {
	tilt := s.tilt
	for v := s.next[s.root]; v != s.root; v = s.next[v] {
		tilt[v] += tilt[s.nodes[v].parent]
		s.pi[v] += tilt[v]
	}
	clear(tilt)
}

// bearing lists what is attached to each fan and funnel: the slots that begin or end there, and other fans and funnels.
type bearing struct {
	built bool
	start []int32 // by index in Solver.joined: where its list begins
	list  []int32 // slots, and joints as their complements
	done  []bool  // by index in Solver.joined, all false between calls
	moved []int32 // joints whose offset has changed
	stack []int32
}

func (b *bearing) on(i int32) []int32 { return b.list[b.start[i]:b.start[i+1]] }

// build makes the lists. O(nodes + arcs), once for each load that is followed by such an edit.
func (b *bearing) build(s *Solver) {
	n := len(s.joined)
	b.start, b.done = resize(b.start, n+1), resize(b.done, n)
	clear(b.start)
	clear(b.done)
	each := func(put func(joint int, on int32)) {
		visit := func(v, on int32) {
			if s.core[v] <= fan {
				put(int(jointOf(s.slotOf[s.via[v]])), on)
			}
		}
		for l, bent := range s.bent {
			if bent {
				a := &s.problem.arcs[s.ids[l]]
				visit(a.from, int32(l))
				visit(a.to, int32(l))
			}
		}
		for i := range s.joined {
			visit(s.joined[i].beyond, ^int32(i))
		}
	}
	each(func(joint int, _ int32) { b.start[joint+1]++ })
	for i := range n {
		b.start[i+1] += b.start[i]
	}
	b.list = resize(b.list, int(b.start[n]))
	fill := slices.Clone(b.start)
	each(func(joint int, on int32) {
		b.list[fill[joint]] = on
		fill[joint]++
	})
	b.built = true
}
