package forecast

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// Trees is gradient boosting of small regression trees on the lags (Friedman 2001): each tree corrects a part of what
// those before it leave. It forecasts one step ahead and goes on from its own forecasts.
type Trees struct{}

// Name implements Kind.
func (Trees) Name() string { return "trees" }

// Decode implements Kind.
func (Trees) Decode(data []byte) (Model, error) { return decoded[trees](data) }

const (
	treeCount   = 100
	treeDepth   = 4
	learnRate   = 0.1
	rowShare    = 0.7   // of the rows, drawn anew for each tree
	fewestRows  = 10    // in a leaf
	mostRows    = 8_000 // the newest; training takes time in proportion
	splitPoints = 32    // tried for each lag
)

// Train implements Kind.
func (Trees) Train(ctx context.Context, s Series, o Options) (Model, error) {
	o = o.WithDefaults()
	w := windowsOf(s.Values, Options{Lags: o.Lags, Horizon: 1})
	if len(w.lags) < 4*fewestRows {
		return nil, short(len(s.Values), o.Lags+4*fewestRows)
	}
	if extra := len(w.lags) - mostRows; extra > 0 {
		w.lags, w.next = w.lags[extra:], w.next[extra:]
	}
	m := trees{Lags: o.Lags, Scale: scaleOf(s.Values)}
	m.Scale.Mean = 0
	g := grower{rows: make([][]float64, len(w.lags)), rest: make([]float64, len(w.lags))}
	for i, lags := range w.lags {
		g.rows[i] = m.features(lags)
		g.rest[i] = m.Scale.to(w.next[i][0] - lags[len(lags)-1])
	}
	random := rand.New(rand.NewPCG(o.Seed, 0x7265657374726565))
	for range treeCount {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var drawn []int
		for i := range g.rows {
			if random.Float64() < rowShare {
				drawn = append(drawn, i)
			}
		}
		tree := g.grow(drawn)
		m.Trees = append(m.Trees, tree)
		for i, row := range g.rows {
			g.rest[i] -= tree.value(row)
		}
	}
	return m, nil
}

type trees struct {
	Lags  int    `json:"lags"`
	Scale scale  `json:"scale"`
	Trees []tree `json:"trees"`
}

// features are the differences of the lags to the last one, and the last one itself.
func (m trees) features(lags []float64) []float64 {
	last := lags[len(lags)-1]
	row := make([]float64, len(lags))
	for i, v := range lags {
		row[i] = m.Scale.to(v - last)
	}
	row[len(row)-1] = m.Scale.to(last)
	return row
}

func (m trees) Needs() int { return m.Lags }

func (m trees) Forecast(past []float64, horizon int) ([]float64, error) {
	return rolled(past, m.Lags, horizon, func(lags []float64) []float64 {
		row, change := m.features(lags), 0.0
		for _, t := range m.Trees {
			change += t.value(row)
		}
		return []float64{lags[len(lags)-1] + m.Scale.from(change)}
	})
}

// tree is a list of nodes, the root first. A leaf has no children.
type tree []treeNode

type treeNode struct {
	Lag   int     `json:"l,omitempty"` // the feature that is compared
	At    float64 `json:"a,omitempty"` // up to it the left child is taken
	Left  int     `json:"y,omitempty"` // index of the child; 0 = this is a leaf
	Right int     `json:"n,omitempty"`
	Value float64 `json:"v,omitempty"` // of a leaf
}

func (t tree) value(row []float64) float64 {
	at := 0
	for t[at].Left != 0 {
		if row[t[at].Lag] <= t[at].At {
			at = t[at].Left
		} else {
			at = t[at].Right
		}
	}
	return t[at].Value
}

// grower grows trees that explain rest by rows.
type grower struct {
	rows [][]float64
	rest []float64
	tree tree
}

func (g *grower) grow(rows []int) tree {
	g.tree = nil
	g.node(rows, treeDepth)
	return g.tree
}

// node adds the node for the rows, and those below it, and returns its index.
func (g *grower) node(rows []int, depth int) int {
	at := len(g.tree)
	sum := 0.0
	for _, i := range rows {
		sum += g.rest[i]
	}
	g.tree = append(g.tree, treeNode{Value: learnRate * sum / max(1, float64(len(rows)))})
	if depth == 0 || len(rows) < 2*fewestRows {
		return at
	}
	lag, border, ok := g.split(rows, sum)
	if !ok {
		return at
	}
	var left, right []int
	for _, i := range rows {
		if g.rows[i][lag] <= border {
			left = append(left, i)
		} else {
			right = append(right, i)
		}
	}
	l := g.node(left, depth-1)
	r := g.node(right, depth-1)
	g.tree[at] = treeNode{Lag: lag, At: border, Left: l, Right: r}
	return at
}

// split finds the lag and the border that reduce the squared error most.
func (g *grower) split(rows []int, sum float64) (lag int, border float64, ok bool) {
	n := float64(len(rows))
	best := sum*sum/n + 1e-12
	sorted := slices.Clone(rows)
	for k := range g.rows[0] {
		slices.SortFunc(sorted, func(a, b int) int {
			return cmp.Or(cmp.Compare(g.rows[a][k], g.rows[b][k]), cmp.Compare(a, b))
		})
		every := max(1, len(sorted)/splitPoints)
		below := 0.0
		for i := range len(sorted) - 1 {
			below += g.rest[sorted[i]]
			v, next := g.rows[sorted[i]][k], g.rows[sorted[i+1]][k]
			count := i + 1
			if count < fewestRows || len(sorted)-count < fewestRows || v == next || count%every != 0 {
				continue
			}
			above := sum - below
			gain := below*below/float64(count) + above*above/(n-float64(count))
			if gain > best && !math.IsInf(gain, 0) {
				best, lag, border, ok = gain, k, v+(next-v)/2, true
			}
		}
	}
	return lag, border, ok
}
