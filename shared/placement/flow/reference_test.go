package flow

import "math/rand/v2"

// plenty means no limit in the reference algorithms; the test graphs stay far below.
const plenty = int64(1) << 30

// reference solves small problems by other means than the package: augmenting paths to a feasible flow, then cancelling
// negative cycles found with the method of Bellman and Ford.
type reference struct {
	nodes int
	arcs  []residual // each followed by its reverse
}

type residual struct {
	from, to  int
	cap, cost int64
}

func (r *reference) add(from, to int, width, cost int64) {
	r.arcs = append(r.arcs, residual{from, to, width, cost}, residual{to, from, 0, -cost})
}

// push sends units over arc i.
func (r *reference) push(i int, units int64) {
	r.arcs[i].cap -= units
	r.arcs[i^1].cap += units
}

// augment sends as much as it can from s to t and returns the amount.
func (r *reference) augment(s, t int) (sent int64) {
	for {
		by := make([]int, r.nodes)
		for v := range by {
			by[v] = -1
		}
		queue := []int{s}
		for len(queue) > 0 && by[t] < 0 {
			v := queue[0]
			queue = queue[1:]
			for i, a := range r.arcs {
				if a.from == v && a.cap > 0 && by[a.to] < 0 && a.to != s {
					by[a.to] = i
					queue = append(queue, a.to)
				}
			}
		}
		if by[t] < 0 {
			return sent
		}
		units := plenty
		for v := t; v != s; v = r.arcs[by[v]].from {
			units = min(units, r.arcs[by[v]].cap)
		}
		for v := t; v != s; v = r.arcs[by[v]].from {
			r.push(by[v], units)
		}
		sent += units
	}
}

// cancel pushes flow around negative cycles until there is none.
func (r *reference) cancel() {
	for cycle := r.negativeCycle(); cycle != nil; cycle = r.negativeCycle() {
		units := plenty
		for _, i := range cycle {
			units = min(units, r.arcs[i].cap)
		}
		for _, i := range cycle {
			r.push(i, units)
		}
	}
}

func (r *reference) negativeCycle() []int {
	dist, by := make([]int64, r.nodes), make([]int, r.nodes)
	last := -1
	for range r.nodes + 1 {
		last = -1
		for i, a := range r.arcs {
			if a.cap > 0 && dist[a.from]+a.cost < dist[a.to] {
				dist[a.to], by[a.to], last = dist[a.from]+a.cost, i, a.to
			}
		}
		if last < 0 {
			return nil
		}
	}
	for range r.nodes {
		last = r.arcs[by[last]].from
	}
	cycle := []int{by[last]}
	for v := r.arcs[by[last]].from; v != last; v = r.arcs[by[v]].from {
		cycle = append(cycle, by[v])
	}
	return cycle
}

// solveReference returns the least cost and the units sent, or one of the package's errors.
func solveReference(p *Problem, partial bool) (cost, sent int64, err error) {
	const unsent = int64(1) << 24 // a price above that of every path of the test graphs
	n := len(p.supply)
	root, s, t := n, n+1, n+2
	r := &reference{nodes: n + 3}
	free := &reference{nodes: n + 3}
	left := make([]int64, n+1)
	var fixed int64
	for _, a := range p.arcs {
		if a.from < 0 {
			continue
		}
		left[a.from] -= a.lower
		left[a.to] += a.lower
		fixed += a.lower * a.cost
		if a.upper == Inf {
			r.add(int(a.from), int(a.to), plenty, a.cost)
			free.add(int(a.from), int(a.to), 1, a.cost)
		} else {
			r.add(int(a.from), int(a.to), a.upper-a.lower, a.cost)
		}
	}
	var slacks []int
	for v, units := range p.supply {
		left[v] += units
		if !partial {
			continue
		}
		left[root] -= units
		if units > 0 {
			sent += units
			slacks = append(slacks, len(r.arcs))
			r.add(v, root, units, unsent)
		} else if units < 0 {
			r.add(root, v, -units, unsent)
		}
	}
	var out, in int64
	for v, units := range left {
		if units > 0 {
			r.add(s, v, units, 0)
			out += units
		} else if units < 0 {
			r.add(v, t, -units, 0)
			in -= units
		}
	}
	if got := r.augment(s, t); got != out || got != in {
		return 0, 0, ErrInfeasible
	}
	if free.negativeCycle() != nil {
		return 0, 0, ErrUnbounded
	}
	r.cancel()
	for i := 0; i < len(r.arcs); i += 2 {
		a := r.arcs[i]
		if a.from < n && a.to < n {
			fixed += r.arcs[i+1].cap * a.cost
		}
	}
	if !partial {
		for _, units := range p.supply {
			sent += max(units, 0)
		}
	}
	for _, i := range slacks {
		sent -= r.arcs[i+1].cap
	}
	return fixed, sent, nil
}

// exhaustive tries every flow of a problem with small finite bounds; found is false if none is feasible.
func exhaustive(p *Problem) (best int64, found bool) {
	balance := append([]int64(nil), p.supply...)
	var try func(i int, cost int64)
	try = func(i int, cost int64) {
		if i == len(p.arcs) {
			for _, units := range balance {
				if units != 0 {
					return
				}
			}
			if !found || cost < best {
				best, found = cost, true
			}
			return
		}
		a := &p.arcs[i]
		if a.from < 0 {
			try(i+1, cost)
			return
		}
		for f := a.lower; f <= a.upper; f++ {
			balance[a.from] -= f
			balance[a.to] += f
			try(i+1, cost+f*a.cost)
			balance[a.from] += f
			balance[a.to] -= f
		}
	}
	try(0, 0)
	return best, found
}

// shape are the parameters of randomProblem.
type shape struct {
	nodes, arcs, width, cost int
	supplies                 int // pairs of supply and demand
	negative, lower, inf     bool
	trees                    bool // with tree-shaped parts, which the network leaves out
}

// draw makes a problem whose supplies add up to zero; it may have no solution.
func (k shape) draw(r *rand.Rand) *Problem {
	n := 1 + r.IntN(k.nodes)
	p := NewProblem(n)
	for range k.supplies {
		units := int64(r.IntN(k.width + 1))
		from, to := r.IntN(n), r.IntN(n)
		p.SetSupply(from, p.Supply(from)+units)
		p.SetSupply(to, p.Supply(to)-units)
	}
	for range r.IntN(k.arcs + 1) {
		lower, upper, cost := k.arc(r)
		p.AddArc(r.IntN(n), r.IntN(n), lower, upper, cost)
	}
	if k.trees {
		for range r.IntN(4) {
			k.drawTree(p, r)
		}
	}
	return p
}

func (k shape) arc(r *rand.Rand) (lower, upper, cost int64) {
	upper, cost = int64(r.IntN(k.width+1)), int64(r.IntN(k.cost+1))
	if k.lower && r.IntN(4) == 0 {
		lower = int64(r.IntN(2*k.width+1) - k.width)
		upper += lower
	}
	if k.inf && r.IntN(3) == 0 {
		upper = Inf
	}
	if k.negative && r.IntN(3) == 0 {
		cost = -cost
	}
	return lower, upper, cost
}

// drawTree adds a chain, a fan or a funnel between two nodes of p, or a separate ring.
func (k shape) drawTree(p *Problem, r *rand.Rand) {
	from, to := r.IntN(p.Nodes()), r.IntN(p.Nodes())
	arc := func(v, w int) {
		lower, upper, cost := k.arc(r)
		p.AddArc(v, w, lower, upper, cost)
	}
	wide := func(v, w int) {
		_, upper, cost := k.arc(r)
		p.AddArc(v, w, 0, max(upper, int64(3*k.width)), cost)
	}
	hub := p.AddNode(0)
	switch r.IntN(4) {
	case 0:
		next := p.AddNode(0)
		arc(from, hub)
		arc(hub, next)
		arc(next, to)
	case 1:
		wide(from, hub)
		for range 1 + r.IntN(3) {
			leaf := p.AddNode(0)
			arc(hub, leaf)
			arc(leaf, to)
		}
	case 2:
		for range 1 + r.IntN(3) {
			arc(r.IntN(p.Nodes()), hub)
		}
		wide(hub, to)
	case 3:
		next := p.AddNode(0)
		arc(hub, next)
		arc(next, hub)
		if r.IntN(2) == 0 {
			wide(from, hub)
		}
	}
}
