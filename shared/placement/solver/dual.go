package solver

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// dual is the Lagrangian relaxation of a problem: shared resources (capacity of a node, places in a spread, the one
// node of several components that must keep apart) are priced instead of limited. The rest falls into independent trees
// of joined components, each of which dynamic programming solves exactly. For prices y >= 0 of rows a x <= b,
//
//	q(y) = y b + sum over trees of max over x of (points + affinities - y a x)
//
// is never less than the value of any plan, since a plan pays nothing for what it leaves free (Geoffrion, Lagrangean
// relaxation for integer programming, 1974). Affinities outside a spanning forest are cut: with the factor of a pair
// written as a sum over levels (same orchestrator, same cluster, same node), the weight of each level and place is
// split between both ends, and the split is a price too (Komodakis, Paragios and Tziritas, MRF energy minimization via
// dual decomposition, 2011).
//
// The trees place components on labels: single nodes, or all other nodes of a cluster at once, which then have no limit
// and the points of the best of them. That is a relaxation as well.
type dual struct {
	m    *Model
	orch int32 // as in state
	must bool  // the best plan places every component that has a candidate

	node    []int32     // of each label, -1 for the rest of a cluster
	cluster []int32     // of each label
	first   []int32     // label where each cluster begins; one more at the end
	label   []int32     // of each node, -1 for one in the rest
	base    [][]float64 // points of each class on each label, -Inf where it has no candidate
	need    [][]claim   // of each class
	units   []float64   // what components ask of each dim on average
	whole   []float64   // capacity of each label, by dim, in these units; Inf for the rest of a cluster

	order  []int32 // components, each after its parent
	parent []int32 // parent of each component, -1 for a root
	up     []int32 // index of the edge to the parent
	shape  []int32 // of each component
	shapes []shape // each after its children
	cuts   []cut
	rows   []row
	of     [][]int32 // rows of each component
	cutsAt [][]int32 // cuts of each component, ^i if it is the second end

	net   [][]float64 // by class and label: points minus prices
	at    []int32     // label of each component in the last evaluation, -1 none
	bound []int32     // orchestrator of each group that requires a single one
	mask  [][]bool    // of each component and label: it may be there; nil for all
	left  []int32     // of each component: labels it may have
	// given, if set, excludes labels that do not fit together with its placement, and the rest of every cluster.
	given *State
	// inside, if set, keeps all other components where given has them; affinities are then not split by cuts.
	inside  []bool
	dearest float64 // no price needs to be higher
	work    int64
	y       layout
}

// claim is the amount of a dim that one member of a class needs, in units of the average need of components.
type claim struct {
	dim    int
	amount float64
}

// layout has the positions of the prices in a vector: amounts by label and dim, then rows by domain, then cuts by
// level.
type layout struct{ rows, cuts, end int }

// row allows at most limit of its members in each domain.
type row struct {
	domain []int32 // of each label, -1 where its nodes differ
	limit  float64
	at     int   // of its first price
	spread int32 // -1 for components kept apart
	names  int
}

// cut is an affinity outside the trees. Its prices are what its first end gets for being at a label, in a cluster and
// under an orchestrator; the second end gets the rest.
type cut struct {
	c, d     int32
	edge     *Edge // from c to d
	at       int
	together []bool // by label
	flat     bool   // no levels, since links count: half for each end
	c2d, d2c []float64
}

// shape is a kind of subtree: components with equal subtrees, places and edges to their parents share one.
type shape struct {
	comp              int32
	kids              []int32
	edge              *Edge  // from its parent, nil for a root
	together          []bool // by label: it can share the node with its parent
	free              bool   // its group is not bound to one orchestrator
	value             []float64
	message           []float64 // what it adds to its parent, by the parent's label
	inCluster, inOrch []int32   // best label of each, -1 none
	best              int32
	none              []float64 // value of having no place, by orchestrator of its group; one entry when free
}

// maxDual limits the size of a relaxation: shapes times labels, and rows and cuts times labels.
const maxDual = 6_000_000

var none = math.Inf(-1)

// newDual builds the relaxation, with at most perCluster nodes of a cluster as labels besides those of keep. It returns
// nil if that would be too large. With each set, every component has its own shape.
func (m *Model) newDual(orch int32, keep []int32, perCluster int, each bool) *dual {
	d := &dual{m: m, orch: orch}
	d.chooseLabels(keep, perCluster)
	d.buildForest()
	d.collectRows()
	if (len(d.cuts)+len(d.rows))*len(d.node) > maxDual || !d.buildShapes(each) {
		return nil
	}
	d.addPrices()
	return d
}

// chooseLabels chooses the labels.
func (d *dual) chooseLabels(keep []int32, perCluster int) {
	m := d.m
	chosen := make([]bool, len(m.Nodes))
	for _, n := range keep {
		if n >= 0 {
			chosen[n] = true
		}
	}
	for i := range m.Components {
		if h := m.Components[i].Home; len(h) == 1 {
			chosen[h[0]] = true
		}
	}
	for i := range m.Classes {
		taken := make([]int, len(m.Clusters)-1)
		for _, n := range m.Classes[i].ranked() {
			if k := m.Nodes[n].Cluster; taken[k] < perCluster {
				chosen[n] = true
				taken[k]++
			}
		}
	}
	d.label = make([]int32, len(m.Nodes))
	for k := range int32(len(m.Clusters) - 1) {
		d.first = append(d.first, int32(len(d.node)))
		rest := false
		for n := m.Clusters[k]; n < m.Clusters[k+1]; n++ {
			d.label[n] = -1
			if d.orch >= 0 && m.Nodes[n].Orchestrator != d.orch {
				continue
			}
			if chosen[n] {
				d.label[n] = int32(len(d.node))
				d.node, d.cluster = append(d.node, n), append(d.cluster, k)
			} else {
				rest = true
			}
		}
		if rest {
			d.node, d.cluster = append(d.node, -1), append(d.cluster, k)
		}
	}
	d.first = append(d.first, int32(len(d.node)))
	d.base = make([][]float64, len(m.Classes))
	for i := range m.Classes {
		cl := &m.Classes[i]
		row := make([]float64, len(d.node))
		for l, n := range d.node {
			if row[l] = none; n >= 0 && cl.May(n) {
				row[l] = cl.Points[n]
			}
		}
		for _, n := range cl.ranked() { // best first, so the first of the rest is the best of it
			if d.label[n] < 0 && (d.orch < 0 || m.Nodes[n].Orchestrator == d.orch) {
				if l := d.first[m.Nodes[n].Cluster+1] - 1; row[l] == none {
					row[l] = cl.Points[n]
				}
			}
		}
		d.base[i] = row
	}
}

// buildForest builds a spanning forest of the affinities, the heaviest first (Kruskal). The remaining ones are cut, and so are
// those that join two groups of which one is bound to an orchestrator.
func (d *dual) buildForest() {
	m := d.m
	type pair struct {
		c int32
		i int
		e *Edge
	}
	var pairs []pair
	for c := range m.Edges {
		for i := range m.Edges[c] {
			if e := &m.Edges[c][i]; int(e.To) > c && e.Weight > 0 {
				pairs = append(pairs, pair{int32(c), i, e})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(b.e.Weight, a.e.Weight) })
	set := make([]int32, len(m.Components))
	for c := range set {
		set[c] = int32(c)
	}
	find := func(c int32) int32 {
		for set[c] != c {
			set[c] = set[set[c]]
			c = set[c]
		}
		return c
	}
	near := make([][]int32, len(m.Components)) // indices of the forest's edges
	for _, p := range pairs {
		a, b := find(p.c), find(p.e.To)
		if a == b || (m.Components[p.c].Group != m.Components[p.e.To].Group && (!m.unbound(p.c) || !m.unbound(p.e.To))) {
			d.cuts = append(d.cuts, cut{c: p.c, d: p.e.To, edge: p.e})
			continue
		}
		set[max(a, b)] = min(a, b)
		near[p.c] = append(near[p.c], int32(p.i))
		near[p.e.To] = append(near[p.e.To], p.e.Back)
	}
	d.parent, d.up = make([]int32, len(m.Components)), make([]int32, len(m.Components))
	seen := make([]bool, len(m.Components))
	for root := range m.Components {
		if seen[root] {
			continue
		}
		seen[root] = true
		d.parent[root] = -1
		d.order = append(d.order, int32(root))
		for next := len(d.order) - 1; next < len(d.order); next++ {
			c := d.order[next]
			slices.Sort(near[c])
			for _, i := range near[c] {
				if e := &m.Edges[c][i]; !seen[e.To] {
					seen[e.To] = true
					d.parent[e.To], d.up[e.To] = c, e.Back
					d.order = append(d.order, e.To)
				}
			}
		}
	}
}

// unbound reports whether the component's group may use several orchestrators.
func (m *Model) unbound(c int32) bool { return !m.Groups[m.Components[c].Group].OneOrchestrator }

// collectRows collects the rows: spreads, and sets of components that all keep apart from each other.
func (d *dual) collectRows() {
	m := d.m
	d.of = make([][]int32, len(m.Components))
	for i := range m.Spreads {
		sp := &m.Spreads[i]
		r := row{domain: make([]int32, len(d.node)), limit: float64(sp.Limit), spread: int32(i), names: sp.Domains}
		for l, n := range d.node {
			if n >= 0 {
				r.domain[l] = sp.Domain[n]
				continue
			}
			k := d.cluster[l]
			r.domain[l] = -2
			for n := m.Clusters[k]; n < m.Clusters[k+1]; n++ {
				if d.label[n] < 0 && r.domain[l] != sp.Domain[n] {
					if r.domain[l] != -2 {
						r.domain[l] = -1
						break
					}
					r.domain[l] = sp.Domain[n]
				}
			}
		}
		d.rows = append(d.rows, r)
	}
	for c := range m.Components {
		d.of[c] = append(d.of[c], m.Components[c].Spreads...)
	}
	cliques := make(map[string]int32)
	self := make([]int32, len(d.node))
	for l, n := range d.node {
		if self[l] = int32(l); n < 0 {
			self[l] = -1
		}
	}
	for c := range m.Components {
		apart := m.Components[c].Apart
		if len(apart) == 0 {
			continue
		}
		i, _ := slices.BinarySearch(apart, int32(c))
		var key []byte
		for _, x := range slices.Insert(slices.Clone(apart), i, int32(c)) {
			key = strconv.AppendInt(append(key, ' '), int64(x), 10)
		}
		r, known := cliques[string(key)]
		if !known {
			r = int32(len(d.rows))
			cliques[string(key)] = r
			d.rows = append(d.rows, row{domain: self, limit: 1, spread: -1, names: len(d.node)})
		}
		d.of[c] = append(d.of[c], r)
	}
}

// buildShapes finds the shapes, leaves first.
func (d *dual) buildShapes(each bool) bool {
	m := d.m
	d.cutsAt = make([][]int32, len(m.Components))
	for i := range d.cuts {
		d.cutsAt[d.cuts[i].c] = append(d.cutsAt[d.cuts[i].c], int32(i))
		d.cutsAt[d.cuts[i].d] = append(d.cutsAt[d.cuts[i].d], ^int32(i))
	}
	kids := make([][]int32, len(m.Components))
	d.shape = make([]int32, len(m.Components))
	known := make(map[string]int32)
	var key []byte
	number := func(v int64) { key = strconv.AppendInt(append(key, ' '), v, 10) }
	for i := len(d.order) - 1; i >= 0; i-- {
		c := d.order[i]
		comp := &m.Components[c]
		key = key[:0]
		number(int64(comp.Class))
		if m.unbound(c) {
			number(-1)
		} else {
			number(int64(comp.Group)) // a group decides as one, so its trees are its own
		}
		for _, n := range comp.Home {
			number(int64(n))
		}
		key = append(key, '/')
		for _, r := range d.of[c] {
			number(int64(r))
		}
		key = append(key, '/')
		if each || len(d.cutsAt[c]) > 0 {
			number(int64(c))
		}
		key = append(key, '/')
		slices.Sort(kids[c])
		for _, k := range kids[c] {
			number(int64(k))
		}
		s := shape{comp: c, kids: kids[c], free: m.unbound(c)}
		p := d.parent[c]
		if p >= 0 {
			s.edge = &m.Edges[p][m.Edges[c][d.up[c]].Back]
			key = append(append(key, '/'), s.edge.Scope.Name...)
			number(int64(math.Float64bits(s.edge.Weight)))
			number(int64(m.Components[p].Class))
			if _, apart := slices.BinarySearch(comp.Apart, p); apart {
				key = append(key, '!')
			}
		}
		k, ok := known[string(key)]
		if !ok {
			k = int32(len(d.shapes))
			known[string(key)] = k
			d.shapes = append(d.shapes, s)
			if len(d.shapes)*len(d.node) > maxDual {
				return false
			}
		}
		d.shape[c] = k
		if p >= 0 {
			kids[p] = append(kids[p], k)
		}
	}
	for i := range d.shapes {
		s := &d.shapes[i]
		s.value = make([]float64, len(d.node))
		s.inCluster, s.inOrch = make([]int32, len(d.first)-1), make([]int32, m.Orchestrators)
		s.none = make([]float64, 1)
		if !s.free {
			s.none = make([]float64, m.Orchestrators)
		}
		if s.edge != nil {
			s.message = make([]float64, len(d.node))
			s.together = d.fitTogether(d.parent[s.comp], s.comp)
		}
	}
	return true
}

// fitTogether reports for each label whether both components fit there at once.
func (d *dual) fitTogether(a, b int32) []bool {
	out := make([]bool, len(d.node))
	for l, n := range d.node {
		out[l] = n < 0 || d.m.fitTogether(a, b, n)
	}
	return out
}

// addPrices adds the capacity rows and numbers the prices.
func (d *dual) addPrices() {
	m := d.m
	dims := m.Dims
	d.units = make([]float64, dims)
	asked := make([]float64, dims)
	for c := range m.Components {
		for _, a := range m.Classes[m.Components[c].Class].Demand {
			d.units[a.Dim] += float64(a.Amount)
			asked[a.Dim]++
		}
	}
	for i := range d.units {
		d.units[i] /= max(1, asked[i])
	}
	d.need, d.net = make([][]claim, len(m.Classes)), make([][]float64, len(m.Classes))
	for i := range m.Classes {
		for _, a := range m.Classes[i].Demand {
			d.need[i] = append(d.need[i], claim{a.Dim, float64(a.Amount) / d.units[a.Dim]})
		}
		d.net[i] = make([]float64, len(d.node))
	}
	d.whole = make([]float64, len(d.node)*dims)
	for l, n := range d.node {
		for i := range dims {
			if d.whole[l*dims+i] = math.Inf(1); n >= 0 {
				d.whole[l*dims+i] = float64(m.Free[int(n)*dims+i]) / d.units[i]
			}
		}
	}
	d.dearest = m.dearest()
	at := len(d.whole)
	d.y.rows = at
	for i := range d.rows {
		d.rows[i].at = at
		at += d.rows[i].names
	}
	d.y.cuts = at
	for i := range d.cuts {
		at = d.split(&d.cuts[i], at)
	}
	d.y.end = at
	d.at = make([]int32, len(m.Components))
	d.bound = make([]int32, len(m.Groups))
}

// dearest returns many times what all components together can earn on average. It limits prices so that sums stay exact
// enough.
func (m *Model) dearest() float64 {
	sum := m.MoveCost
	for c := range m.Components {
		sum += m.Classes[m.Components[c].Class].most
		for i := range m.Edges[c] {
			sum += m.Edges[c][i].Weight
		}
	}
	return 1000 * (1 + sum/float64(max(1, len(m.Components))))
}

// split adds the prices of a cut: one for every label, cluster and orchestrator.
func (d *dual) split(k *cut, at int) int {
	m := d.m
	k.at = at
	k.flat = m.Links != nil && k.edge.Scope.Linked
	if k.flat {
		back := &m.Edges[k.d][k.edge.Back]
		k.c2d, k.d2c = d.halves(k.c, k.edge), d.halves(k.d, back)
		return at
	}
	k.together = d.fitTogether(k.c, k.d)
	return at + len(d.node) + len(d.first) - 1 + m.Orchestrators
}

// halves gives one end half of the weight at the largest factor in reach.
func (d *dual) halves(c int32, e *Edge) []float64 {
	out := make([]float64, len(d.node))
	for l, n := range d.node {
		f := e.Scope.Node
		if n >= 0 && d.m.Classes[d.m.Components[c].Class].May(n) {
			f = d.m.reach(c, e, n)
		}
		out[l] = e.Weight / 2 * f
	}
	return out
}

// levels returns the weight of a cut at each level: on the same node, in the same cluster, under the same orchestrator.
func (k *cut) levels() (node, cluster, orch float64) {
	w, s := k.edge.Weight, k.edge.Scope
	return w * (s.Node - s.Cluster), w * (s.Cluster - s.Orchestrator), w * s.Orchestrator
}

// start returns prices of zero, with cut affinities split in halves.
func (d *dual) start() []float64 {
	y := make([]float64, d.y.end)
	for i := range d.cuts {
		k := &d.cuts[i]
		if k.flat {
			continue
		}
		node, cluster, orch := k.levels()
		labels, clusters := len(d.node), len(d.first)-1
		for j := range labels + clusters + d.m.Orchestrators {
			switch {
			case j < labels:
				y[k.at+j] = node / 2
			case j < labels+clusters:
				y[k.at+j] = cluster / 2
			default:
				y[k.at+j] = orch / 2
			}
		}
	}
	return y
}
