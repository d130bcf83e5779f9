package solver

import "math"

// joint is the Lagrangian relaxation of a problem with channels. Capacity of nodes and bandwidth of media are priced instead of
// limited: what a component takes of its node costs it y, what a channel takes of the media of its route costs the channel z. What is
// left for given prices,
//
//	max over x of  sum of points(c, x(c)) - y need(c)  -  sum over channels e of b(e) P(site x(c), site x(d))
//	               + sum over affinities of w f(x(c), x(d))
//
// with P(i, j) the price of the cheapest route that e allows, none for two on one node, is a problem of pairs on a graph with cycles,
// which is hard by itself. It is relaxed too: each pair sends both of its ends a message for each node, so that what the ends and
// what the pair is worth on its own is never less than what they are worth together. Messages are those of max-product linear
// programming (Globerson and Jaakkola, Fixing max-product, 2007), which lower that sum one pair after the other; prices take subgradient
// steps in between, of the length that Polyak proposes. Any prices and any messages give a valid bound.
//
// Affinities are counted in halves at both ends, as far as they can reach, which is valid and loose; spreads, sets that keep apart and
// limits of links are left out.
type joint struct {
	m     *Model
	orch  int32
	comps []int32 // those with a candidate
	index []int32 // of each component among them, -1 without
	sites int
	at    [][]int32    // nodes of each site
	pairs []pair       // channels between two of them
	of    [][]int32    // pairs of each component, ^i where it is the second end
	ways  [][]weighted // routes of each pair of sites, i*sites+j
	price []float64    // of the routes, in one line
	first []int32      // where those of a pair of sites begin

	gain   [][]float64 // what a component is worth on each node, without prices; -Inf for no candidate
	belief [][]float64 // with prices and messages
	y, z   []float64   // prices, per unit
	units  []float64   // what components ask of each dim on average
	media  float64     // what channels ask on average
	free   []float64   // of nodes and dims, in units
	room   []float64   // of media, in units
	work   int64

	settled bool // most components may stay where they are
}

// pair is a channel seen by the relaxation.
type pair struct {
	c, d      int32 // among comps
	channel   int32
	bandwidth float64
	toC, toD  []float64 // messages, by node
	together  []bool    // both fit on the node at once
	cost      []float64 // by pair of sites
	via       []int16   // cheapest route, -1 for none
	ends      [2]int32  // the nodes that were best when the pair was looked at last
}

type weighted struct {
	route *Route
	media []int32 // in one line, each once for every time
}

// maxJoint limits the size: channels times nodes, and channels times pairs of sites.
const maxJoint = 4_000_000

// newJoint builds the relaxation; nil if that would be too large.
func (m *Model) newJoint(orch int32) *joint {
	j := &joint{m: m, orch: orch, index: make([]int32, len(m.Components))}
	for _, n := range m.Nodes {
		j.sites = max(j.sites, int(n.Site)+1)
	}
	size := len(m.Channels) * (len(m.Nodes) + j.sites*j.sites)
	if size > maxJoint || j.sites*j.sites > maxJoint/8 || len(m.Components)*len(m.Nodes) > maxJoint {
		return nil
	}
	j.at = make([][]int32, j.sites)
	for n := range m.Nodes {
		if orch < 0 || m.Nodes[n].Orchestrator == orch {
			j.at[m.Nodes[n].Site] = append(j.at[m.Nodes[n].Site], int32(n))
		}
	}
	j.collect()
	j.connect()
	j.scale()
	return j
}

// collect finds what each component can be worth on each node.
func (j *joint) collect() {
	m := j.m
	for c := range m.Components {
		j.index[c] = -1
		cl := m.ClassOf(int32(c))
		if (j.orch < 0 && cl.count == 0) || (j.orch >= 0 && cl.inOrch[j.orch] == 0) {
			continue
		}
		j.index[c] = int32(len(j.comps))
		j.comps = append(j.comps, int32(c))
		gain := make([]float64, len(m.Nodes))
		for n := range gain {
			gain[n] = none
			if !cl.May(int32(n)) || j.orch >= 0 && m.Nodes[n].Orchestrator != j.orch {
				continue
			}
			gain[n] = m.points(int32(c), int32(n))
			for i := range m.Edges[c] {
				e := &m.Edges[c][i]
				gain[n] += e.Weight / 2 * m.reach(int32(c), e, int32(n))
			}
		}
		j.work += int64(len(gain)*(1+len(m.Edges[c]))) / 2
		j.gain = append(j.gain, gain)
		j.belief = append(j.belief, make([]float64, len(m.Nodes)))
	}
}

// connect lists the routes of all pairs of sites, and the channels.
func (j *joint) connect() {
	m, k := j.m, j.sites
	j.ways, j.first = make([][]weighted, k*k), make([]int32, k*k+1)
	total := int32(0)
	for a := range k {
		for b := range k {
			j.first[a*k+b] = total
			if len(j.at[a]) == 0 || len(j.at[b]) == 0 {
				continue
			}
			routes := m.RoutesBetween(j.at[a][0], j.at[b][0])
			for i := range routes {
				j.ways[a*k+b] = append(j.ways[a*k+b], weighted{&routes[i], routes[i].Media})
			}
			total += int32(len(routes))
		}
	}
	j.first[k*k] = total
	j.price = make([]float64, total)
	j.work += int64(total)
	j.of = make([][]int32, len(j.comps))
	for i := range m.Channels {
		ch := &m.Channels[i]
		c, d := j.index[ch.From], j.index[ch.To]
		if c < 0 || d < 0 {
			continue
		}
		j.of[c] = append(j.of[c], int32(len(j.pairs)))
		j.of[d] = append(j.of[d], ^int32(len(j.pairs)))
		j.pairs = append(j.pairs, pair{
			c: c, d: d, channel: int32(i), bandwidth: float64(ch.Bandwidth),
			toC: make([]float64, len(m.Nodes)), toD: make([]float64, len(m.Nodes)), together: make([]bool, len(m.Nodes)),
			cost: make([]float64, k*k), via: make([]int16, k*k),
		})
		p := &j.pairs[len(j.pairs)-1]
		for n := range p.together {
			p.together[n] = m.fitTogether(ch.From, ch.To, int32(n))
		}
	}
}

// scale chooses units in which prices are about as large as points.
func (j *joint) scale() {
	m := j.m
	j.units = make([]float64, m.Dims)
	asked := make([]float64, m.Dims)
	for _, c := range j.comps {
		for _, a := range m.ClassOf(c).Demand {
			j.units[a.Dim] += float64(a.Amount)
			asked[a.Dim]++
		}
	}
	for i := range j.units {
		j.units[i] = max(1, j.units[i]/max(1, asked[i]))
	}
	for i := range j.pairs {
		j.media += j.pairs[i].bandwidth
	}
	j.media = max(1, j.media/float64(max(1, len(j.pairs))))
	for i := range j.pairs {
		j.pairs[i].bandwidth /= j.media
	}
	j.free = make([]float64, len(m.Free))
	for i, v := range m.Free {
		j.free[i] = float64(v) / j.units[i%m.Dims]
	}
	j.room = make([]float64, len(m.Media))
	for i, v := range m.Media {
		j.room[i] = float64(v) / j.media
	}
	j.y, j.z = make([]float64, len(j.free)), make([]float64, len(j.room))
}

// charge computes what routes cost each channel, and what components are worth after prices, with the messages there are.
func (j *joint) charge() {
	m := j.m
	for w := range j.ways {
		for r := range j.ways[w] {
			var sum float64
			for _, medium := range j.ways[w][r].media {
				sum += j.z[medium]
			}
			j.price[int(j.first[w])+r] = sum
		}
	}
	for i := range j.pairs {
		p := &j.pairs[i]
		ch := &m.Channels[p.channel]
		for w := range j.ways {
			best, via := math.Inf(1), int16(-1)
			for r := range j.ways[w] {
				if v := j.price[int(j.first[w])+r]; v < best && ch.Allows(j.ways[w][r].route) {
					best, via = v, int16(r)
				}
			}
			p.cost[w], p.via[w] = best*p.bandwidth, via
			if via < 0 {
				p.cost[w] = math.Inf(1)
			}
		}
	}
	for i, c := range j.comps {
		b := j.belief[i]
		copy(b, j.gain[i])
		for _, a := range m.ClassOf(c).Demand {
			need := float64(a.Amount) / j.units[a.Dim]
			for n := range b {
				b[n] -= j.y[n*m.Dims+a.Dim] * need
			}
		}
		for _, e := range j.of[i] {
			message := j.pairs[max(e, ^e)].toC
			if e < 0 {
				message = j.pairs[^e].toD
			}
			for n, v := range message {
				b[n] += v
			}
		}
	}
	j.work += int64(len(j.pairs)*(2*len(m.Nodes)+len(j.price))+len(j.comps)*len(m.Nodes)) / 16
}

// reached is the best of one end by site, and what a node of each site can have with it.
type reached struct {
	best, with []float64
	node, from []int32 // the best node of each site; and the site that is best with each
}

func newReached(sites int) reached {
	return reached{make([]float64, sites), make([]float64, sites), make([]int32, sites), make([]int32, sites)}
}

// gather finds the best of the sender for each site of the receiver; forth says that the sender is the first end.
func (j *joint) gather(r *reached, p *pair, sender []float64, forth bool) {
	k := j.sites
	for s := range k {
		r.best[s], r.node[s] = none, -1
		for _, n := range j.at[s] {
			if sender[n] > r.best[s] {
				r.best[s], r.node[s] = sender[n], n
			}
		}
	}
	for s := range k {
		r.with[s], r.from[s] = none, -1
		for t := range k {
			cost := p.cost[s*k+t]
			if forth {
				cost = p.cost[t*k+s]
			}
			if v := r.best[t] - cost; v > r.with[s] {
				r.with[s], r.from[s] = v, int32(t)
			}
		}
	}
}

// exchange lets every pair send its messages anew, and returns false if some pair has no places at all.
func (j *joint) exchange(backwards bool) bool {
	m := j.m
	toC, toD := newReached(j.sites), newReached(j.sites)
	for k := range j.pairs {
		i := k
		if backwards {
			i = len(j.pairs) - 1 - k
		}
		p := &j.pairs[i]
		c, d := j.belief[p.c], j.belief[p.d]
		for n := range c { // without what the pair said last
			c[n] -= p.toC[n]
			d[n] -= p.toD[n]
		}
		j.gather(&toC, p, d, false)
		j.gather(&toD, p, c, true)
		top := none
		for n := range c {
			s := m.Nodes[n].Site
			mc, md, same := toC.with[s], toD.with[s], false
			if p.together[n] {
				same = d[n] >= mc
				mc, md = max(mc, d[n]), max(md, c[n])
			}
			was, other := c[n], d[n]
			if was > none && mc > none && was+mc > top {
				top = was + mc
				p.ends = [2]int32{int32(n), int32(n)}
				if !same {
					p.ends[1] = toC.node[toC.from[s]]
				}
			}
			p.toC[n] = j.tell(p.c, n, was, mc)
			p.toD[n] = j.tell(p.d, n, other, md)
		}
		if top == none {
			return false
		}
	}
	j.work += int64(len(j.pairs)*(4*len(m.Nodes)+2*j.sites*j.sites)) / 12
	return true
}

// tell averages what an end is worth on a node by itself with what both are worth, and returns the message that does so. Where the
// other end cannot follow, the end cannot be.
func (j *joint) tell(c int32, n int, alone, both float64) float64 {
	if alone == none {
		return 0
	}
	if both == none {
		j.gain[c][n], j.belief[c][n] = none, none
		return 0
	}
	j.belief[c][n] = (alone + both) / 2
	return j.belief[c][n] - alone
}

// value returns the bound after an exchange of messages, and the subgradient of the prices in gy and gz; false if some component
// has no place. at gets the best node of each component.
func (j *joint) value(at []int32, gy, gz []float64) (q float64, ok bool) {
	m := j.m
	copy(gy, j.free)
	copy(gz, j.room)
	var size float64
	for i, c := range j.comps {
		best, node := none, int32(-1)
		for n, v := range j.belief[i] {
			if v > best {
				best, node = v, int32(n)
			}
		}
		if node < 0 {
			return none, false
		}
		at[i] = node
		q += best
		size += math.Abs(best)
		for _, a := range m.ClassOf(c).Demand {
			gy[int(node)*m.Dims+a.Dim] -= float64(a.Amount) / j.units[a.Dim]
		}
	}
	for i := range j.pairs {
		p := &j.pairs[i]
		if p.ends[0] == p.ends[1] {
			continue
		}
		w := int(m.Nodes[p.ends[0]].Site)*j.sites + int(m.Nodes[p.ends[1]].Site)
		if p.via[w] < 0 {
			continue
		}
		for _, medium := range j.ways[w][p.via[w]].media {
			gz[medium] -= p.bandwidth
		}
	}
	var paid float64
	for i, v := range j.y {
		if v > 0 {
			paid += v * j.free[i]
		}
	}
	for i, v := range j.z {
		if v > 0 {
			paid += v * j.room[i]
		}
	}
	// Every sum above may be rounded, each message many times over.
	return q + paid + 1e-14*float64(len(j.y)+len(j.z)+8*len(j.pairs)+len(j.comps))*(size+paid), true
}

// descend lowers the bound until it meets what a plan is known to be worth, nothing more is gained, or stop says so. It leaves the best
// prices in y and z. ok is false if not all components can have a place at once, whatever their amounts are.
func (j *joint) descend(known float64, rounds int, stop func() bool) (bound float64, ok bool) {
	bound = math.Inf(1)
	at := make([]int32, len(j.comps))
	total := len(j.y) + len(j.z)
	slope, turned, best := make([]float64, total), make([]float64, total), make([]float64, total)
	part, idle := 1.0, 0
	for round := 0; round < rounds && !stop(); round++ {
		j.charge()
		if !j.exchange(round%2 == 1) {
			return none, false
		}
		q, ok := j.value(at, slope[:len(j.y)], slope[len(j.y):])
		if !ok {
			return none, false
		}
		idle++
		if q < bound {
			if q < bound-worthIt*(bound-known) {
				idle = 0
			}
			bound = q
			copy(best, j.y)
			copy(best[len(j.y):], j.z)
		}
		if j.m.rounded(bound) <= known+slack(known) {
			break
		}
		if idle > patience {
			if part /= 2; part < leastStep {
				break
			}
			idle = 0
			copy(j.y, best)
			copy(j.z, best[len(j.y):])
			clear(turned)
			continue
		}
		j.step(part*(q-known), slope, turned)
	}
	copy(j.y, best)
	copy(j.z, best[len(j.y):])
	return bound, true
}

// step moves the prices against the slope, as descent.step does.
func (j *joint) step(gain float64, slope, direction []float64) {
	price := func(i int) *float64 {
		if i < len(j.y) {
			return &j.y[i]
		}
		return &j.z[i-len(j.y)]
	}
	var turn, length float64
	for i, v := range slope {
		if *price(i) == 0 && v > 0 || math.Abs(v) < 1e-9 {
			v, slope[i] = 0, 0
		}
		turn += v * direction[i]
		length += direction[i] * direction[i]
	}
	keep := 0.0
	if turn < 0 {
		keep = -1.5 * turn / length
	}
	length = 0
	for i, v := range slope {
		direction[i] = v + keep*direction[i]
		length += direction[i] * direction[i]
	}
	if length == 0 {
		return
	}
	dearest := j.m.dearest()
	for i, v := range direction {
		if v != 0 {
			p := price(i)
			*p = min(max(*p-gain/length*v, 0), dearest)
		}
	}
}

// withChannels bounds a solution by what channels cost, and improves it by annealing, within some work.
func (s *State) withChannels(sol *Solution, work int64) {
	able := s.m.placeable(s.orch)
	if len(s.m.Channels) == 0 || able == 0 || sol.proven() {
		return
	}
	j := s.m.newJoint(s.orch)
	if j == nil {
		return
	}
	defer func() { s.work += j.work }()
	if j.settled = s.m.settled(); j.settled && able == sol.PlacedBound {
		s.anneal(j, sol, work)
	}
	if sol.Placed < able && able == sol.PlacedBound {
		s.anneal(j, sol, work/4)
	}
	if sol.Placed < able {
		return // the bound is on plans that place everything
	}
	bound, ok := j.descend(sol.Value, maxRounds, func() bool { return j.work > work })
	if !ok {
		return
	}
	sol.Bound = min(sol.Bound, s.m.rounded(bound+slack(bound)))
	if !sol.proven() {
		s.anneal(j, sol, work)
	}
}
