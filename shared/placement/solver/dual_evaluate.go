package solver

import "math"

// evaluate returns q(y), rounded up by the possible rounding error of its sums, and leaves in d.at where the trees put
// the components. If slope is not nil, it gets a subgradient of q at y.
func (d *dual) evaluate(y, slope []float64) float64 {
	d.subtractPrices(y)
	for i := range d.shapes {
		d.solve(&d.shapes[i], d.shapes[i].comp, y)
	}
	d.work += int64(len(d.node)) * int64(len(d.net)+4*len(d.shapes)+6*len(d.cuts)) / 12
	q, size := d.choose()
	var paid float64
	for i, b := range d.whole {
		if y[i] > 0 {
			paid += y[i] * b
		}
	}
	for i := range d.rows {
		for j := range d.rows[i].names {
			paid += y[d.rows[i].at+j] * d.rows[i].limit
		}
	}
	q += paid + 1e-15*float64(len(d.at)+len(y))*(size+paid)
	if slope != nil {
		d.slope(slope)
	}
	return q
}

// subtractPrices computes what the classes earn on the labels minus prices.
func (d *dual) subtractPrices(y []float64) {
	dims := d.m.Dims
	for i, net := range d.net {
		copy(net, d.base[i])
		for _, a := range d.need[i] {
			for l, j := 0, a.dim; l < len(net); l, j = l+1, j+dims {
				net[l] -= y[j] * a.amount
			}
		}
	}
}

// solve computes the value of the subtree of component c at every label, and what that adds to the parent at every
// label.
func (d *dual) solve(s *shape, c int32, y []float64) {
	copy(s.value, d.net[d.m.Components[c].Class])
	d.extras(s, c, y)
	for _, k := range s.kids {
		if d.inside != nil && !d.inside[d.shapes[k].comp] {
			continue
		}
		for l, v := range d.shapes[k].message {
			s.value[l] += v
		}
	}
	d.restrictTo(s, c)
	d.findBest(s)
	able := s.best >= 0 || (d.mask != nil && d.left[c] == 0 && d.able(c))
	for o := range s.none {
		s.none[o] = none
		if able && d.must && s.free {
			continue
		}
		s.none[o] = 0
		for _, k := range s.kids {
			if d.inside == nil || d.inside[d.shapes[k].comp] {
				v, _ := d.alone(&d.shapes[k], int32(o))
				s.none[o] += v
			}
		}
	}
	if s.edge != nil && (d.inside == nil || d.inside[d.parent[c]]) {
		d.sendMessage(s)
	}
}

// restrictTo bars labels by the mask and by the given placement.
func (d *dual) restrictTo(s *shape, c int32) {
	if d.mask != nil {
		for l, ok := range d.mask[c] {
			if !ok {
				s.value[l] = none
			}
		}
	}
	if d.given != nil {
		for l, n := range d.node {
			if s.value[l] > none && (n < 0 || !d.given.Fits(c, n)) {
				s.value[l] = none
			}
		}
	}
}

// extras adds the values that depend on the component and not only on its class.
func (d *dual) extras(s *shape, c int32, y []float64) {
	m := d.m
	if home := m.Components[c].Home; len(home) > 0 {
		last := int32(-1)
		for _, n := range home {
			l := d.label[n]
			if l < 0 {
				l = d.first[m.Nodes[n].Cluster+1] - 1
			}
			if l != last && (d.orch < 0 || m.Nodes[n].Orchestrator == d.orch) {
				s.value[l] += m.MoveCost
				last = l
			}
		}
	}
	for _, i := range d.of[c] {
		r := &d.rows[i]
		for l, g := range r.domain {
			if g >= 0 {
				s.value[l] -= y[r.at+int(g)]
			}
		}
	}
	if d.inside != nil {
		d.near(s, c)
		return
	}
	labels, clusters := len(d.node), len(d.first)-1
	for _, i := range d.cutsAt[c] {
		k, second := &d.cuts[max(i, ^i)], i < 0
		if k.flat {
			half := k.c2d
			if second {
				half = k.d2c
			}
			for l, v := range half {
				s.value[l] += v
			}
			continue
		}
		node, cluster, orch := k.levels()
		for l, g := range d.cluster {
			byNode, byCluster := y[k.at+l], y[k.at+labels+int(g)]
			byOrch := y[k.at+labels+clusters+int(m.OrchestratorOf[g])]
			if second {
				byNode, byCluster, byOrch = node-byNode, cluster-byCluster, orch-byOrch
			}
			if k.together[l] {
				s.value[l] += byNode
			}
			s.value[l] += byCluster + byOrch
		}
	}
}

// near adds what the component earns with the partners that the given placement has placed.
func (d *dual) near(s *shape, c int32) {
	m := d.m
	for i := range m.Edges[c] {
		e := &m.Edges[c][i]
		at := d.given.At[e.To]
		if at < 0 {
			continue
		}
		for k := range int32(len(d.first) - 1) {
			v := e.Weight * e.Scope.Cluster
			if k != m.Nodes[at].Cluster {
				v = e.Weight * m.across(e, k, m.Nodes[at].Cluster)
			}
			for l := d.first[k]; l < d.first[k+1]; l++ {
				s.value[l] += v
			}
		}
		if l := d.label[at]; l >= 0 {
			s.value[l] += e.Weight * (e.Scope.Node - e.Scope.Cluster)
		}
	}
}

// findBest finds the best label of each cluster, of each orchestrator and of all, the first of equals.
func (d *dual) findBest(s *shape) {
	s.best = -1
	for o := range s.inOrch {
		s.inOrch[o] = -1
	}
	for k := range s.inCluster {
		best := int32(-1)
		v := none
		for l := d.first[k]; l < d.first[k+1]; l++ {
			if s.value[l] > v {
				best, v = l, s.value[l]
			}
		}
		s.inCluster[k] = best
		if best < 0 {
			continue
		}
		if o := d.m.OrchestratorOf[k]; s.inOrch[o] < 0 || v > s.value[s.inOrch[o]] {
			s.inOrch[o] = best
		}
		if s.best < 0 || v > s.value[s.best] {
			s.best = best
		}
	}
}

// at returns the value at a label; -1 is no label.
func (s *shape) at(l int32) float64 {
	if l < 0 {
		return none
	}
	return s.value[l]
}

// alone returns the best value of a subtree without its parent, and where its top is: -1 for nowhere. A group that is
// bound uses orchestrator o.
func (d *dual) alone(s *shape, o int32) (float64, int32) {
	best, nowhere := s.best, s.none[0]
	if !s.free {
		best, nowhere = s.inOrch[o], s.none[o]
		if d.must && best >= 0 {
			nowhere = none
		}
	}
	if v := s.at(best); v >= nowhere && best >= 0 {
		return v, best
	}
	return nowhere, -1
}

// sendMessage computes the message of a subtree to its parent.
func (d *dual) sendMessage(s *shape) {
	w, sc := s.edge.Weight, s.edge.Scope
	for k := range s.inCluster {
		if d.first[k] == d.first[k+1] {
			continue
		}
		far, _ := d.beyond(s, int32(k))
		if v := s.at(s.inCluster[k]) + w*sc.Cluster; v > far {
			far = v
		}
		if sc.Node == sc.Cluster {
			for l := d.first[k]; l < d.first[k+1]; l++ {
				s.message[l] = far
			}
			continue
		}
		same := w * sc.Node
		for l := d.first[k]; l < d.first[k+1]; l++ {
			s.message[l] = far
			if v := s.value[l] + same; v > far && s.together[l] {
				s.message[l] = v
			}
		}
	}
}

// beyond returns the best of a subtree outside the cluster of its parent, or nowhere. It may return a label inside that
// cluster, which only means that inside is better.
func (d *dual) beyond(s *shape, k int32) (float64, int32) {
	m := d.m
	o := m.OrchestratorOf[k]
	v, l := d.alone(s, o)
	if w := s.at(s.inOrch[o]) + s.edge.Weight*s.edge.Scope.Orchestrator; w > v {
		v, l = w, s.inOrch[o]
	}
	if m.Links != nil && s.edge.Scope.Linked {
		for other, best := range s.inCluster {
			if best < 0 || int32(other) == k || (!s.free && m.OrchestratorOf[other] != o) {
				continue
			}
			if w := s.value[best] + s.edge.Weight*m.across(s.edge, k, int32(other)); w > v {
				v, l = w, best
			}
		}
		d.work += int64(len(s.inCluster)) / 4
	}
	return v, l
}

// choose decides where everything goes, roots first, and returns the value of the trees, and the same sum of absolute
// values.
func (d *dual) choose() (q, size float64) {
	m := d.m
	worth := make(map[int32][]float64) // of bound groups, by orchestrator
	for _, c := range d.order {
		if s := &d.shapes[d.shape[c]]; d.parent[c] < 0 && !s.free {
			g := m.Components[c].Group
			if worth[g] == nil {
				worth[g] = make([]float64, m.Orchestrators)
			}
			for o := range m.Orchestrators {
				v, _ := d.alone(s, int32(o))
				worth[g][o] += v
			}
		}
	}
	for g, sums := range worth {
		best := max(d.orch, 0)
		for o := range sums {
			if d.orch < 0 && sums[o] > sums[best] {
				best = int32(o)
			}
		}
		d.bound[g] = best
	}
	for _, c := range d.order {
		v := d.chooseLabel(c)
		if d.parent[c] < 0 {
			q += v
			size += math.Abs(v)
		}
	}
	return q, size
}

// chooseLabel chooses the label of a component whose parent has its label, and returns the value of its subtree there.
func (d *dual) chooseLabel(c int32) float64 {
	s := &d.shapes[d.shape[c]]
	o := d.bound[d.m.Components[c].Group]
	p := d.parent[c]
	if p < 0 || d.at[p] < 0 || (d.inside != nil && !d.inside[p]) {
		v, l := d.alone(s, o)
		d.at[c] = l
		return v
	}
	at := d.at[p]
	k := d.cluster[at]
	w, sc := s.edge.Weight, s.edge.Scope
	v, l := d.beyond(s, k)
	if in := s.inCluster[k]; in >= 0 && s.at(in)+w*sc.Cluster >= v {
		v, l = s.at(in)+w*sc.Cluster, in
	}
	if s.together[at] && s.value[at] > none && s.value[at]+w*sc.Node >= v {
		v, l = s.value[at]+w*sc.Node, at
	}
	d.at[c] = l
	return v
}

// slope computes the subgradient: the free part of every row, and which end of a cut is where it earns its price.
func (d *dual) slope(g []float64) {
	m := d.m
	dims := m.Dims
	copy(g, d.whole)
	for i := range d.rows {
		for j := range d.rows[i].names {
			g[d.rows[i].at+j] = d.rows[i].limit
		}
	}
	clear(g[d.y.cuts:])
	for c, l := range d.at {
		if l < 0 {
			continue
		}
		for _, a := range d.need[m.Components[c].Class] {
			g[int(l)*dims+a.dim] -= a.amount
		}
		for _, i := range d.of[c] {
			if r := &d.rows[i]; r.domain[l] >= 0 {
				g[r.at+int(r.domain[l])]--
			}
		}
	}
	labels, clusters := len(d.node), len(d.first)-1
	for i := range d.cuts {
		k := &d.cuts[i]
		if k.flat {
			continue
		}
		for end, c := range []int32{k.c, k.d} {
			l := d.at[c]
			if l < 0 {
				continue
			}
			sign := 1 - 2*float64(end)
			if k.together[l] {
				g[k.at+int(l)] += sign
			}
			g[k.at+labels+int(d.cluster[l])] += sign
			g[k.at+labels+clusters+int(m.OrchestratorOf[d.cluster[l]])] += sign
		}
	}
}
