package forecast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Graph is what was measured on the nodes of a graph at the same times.
type Graph struct {
	Start   time.Time
	Step    time.Duration
	Nodes   []string
	Metrics []string
	Links   [][2]int    // of nodes, in either direction
	Values  [][]float64 // the series, by node and within it by metric; a gap is NaN
}

// Len is how many steps there are.
func (g Graph) Len() int {
	if len(g.Values) == 0 {
		return 0
	}
	return len(g.Values[0])
}

// until are the first n values of each series.
func (g Graph) until(n int) Graph {
	seen := g
	seen.Values = until(g.Values, n)
	return seen
}

func until(values [][]float64, n int) [][]float64 {
	seen := make([][]float64, len(values))
	for i, list := range values {
		seen[i] = list[:n]
	}
	return seen
}

// The most that a graph may have.
const (
	MaxNodes   = 64
	MaxMetrics = 4
)

// Check says what is wrong with the graph.
func (g Graph) Check() error {
	switch {
	case len(g.Nodes) == 0 || len(g.Nodes) > MaxNodes:
		return fmt.Errorf("a graph must have 1 to %d nodes, it has %d", MaxNodes, len(g.Nodes))
	case len(g.Metrics) == 0 || len(g.Metrics) > MaxMetrics:
		return fmt.Errorf("a graph must have 1 to %d metrics, it has %d", MaxMetrics, len(g.Metrics))
	case len(g.Values) != len(g.Nodes)*len(g.Metrics):
		return fmt.Errorf("%d nodes with %d metrics have %d series, there are %d", len(g.Nodes), len(g.Metrics), len(g.Nodes)*len(g.Metrics), len(g.Values))
	}
	for i, list := range g.Values {
		if len(list) != g.Len() {
			return fmt.Errorf("series %d has %d values, the first one has %d", i, len(list), g.Len())
		}
	}
	for _, l := range g.Links {
		if min(l[0], l[1]) < 0 || max(l[0], l[1]) >= len(g.Nodes) {
			return fmt.Errorf("there is no link between nodes %d and %d: there are %d", l[0], l[1], len(g.Nodes))
		}
	}
	return nil
}

// GraphModel predicts all series of a graph at once. It is safe for use by several goroutines.
type GraphModel interface {
	// Needs returns how many past values Forecast makes use of.
	Needs() int
	// Forecast returns the next values of each series. Gaps count as the value before them; a series of nothing but gaps as zeros.
	Forecast(past [][]float64, horizon int) ([][]float64, error)
}

// GraphKind is a way to forecast a graph.
type GraphKind interface {
	Name() string
	Train(ctx context.Context, g Graph, o Options) (GraphModel, error)
	Decode(data []byte) (GraphModel, error)
}

// GraphKinds are all of them, the two naive ones first. Of the kinds that know one series only, those are left out of which hundreds
// cannot be trained in a few minutes.
var GraphKinds = []GraphKind{
	Each{LastValue{}}, Each{Yesterday{}}, Each{HoltWinters{}}, Each{Ridge{}}, STGNN{}, A3TGCN{},
}

// GraphKindOf returns the kind of that name.
func GraphKindOf(name string) (GraphKind, error) {
	var names []string
	for _, k := range GraphKinds {
		if k.Name() == name {
			return k, nil
		}
		names = append(names, k.Name())
	}
	return nil, fmt.Errorf("there is no kind of model %q for a graph; there are %v", name, names)
}

// Each is a kind that takes every series for itself, as if there were no graph.
type Each struct{ Kind Kind }

// Name implements GraphKind.
func (k Each) Name() string { return k.Kind.Name() }

// Train implements GraphKind.
func (k Each) Train(ctx context.Context, g Graph, o Options) (GraphModel, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	var m each
	for i, values := range g.Values {
		one, err := k.Kind.Train(ctx, Series{Start: g.Start, Step: g.Step, Values: values}, o)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", g.Metrics[i%len(g.Metrics)], g.Nodes[i/len(g.Metrics)], err)
		}
		m.Models = append(m.Models, one)
	}
	return m, nil
}

// Decode implements GraphKind.
func (k Each) Decode(data []byte) (GraphModel, error) {
	var raw struct {
		Models []json.RawMessage `json:"models"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("read the model: %w", err)
	}
	var m each
	for _, part := range raw.Models {
		one, err := k.Kind.Decode(part)
		if err != nil {
			return nil, err
		}
		m.Models = append(m.Models, one)
	}
	return m, nil
}

type each struct {
	Models []Model `json:"models"`
}

func (m each) Needs() int {
	most := 1
	for _, one := range m.Models {
		most = max(most, one.Needs())
	}
	return most
}

func (m each) Forecast(past [][]float64, horizon int) ([][]float64, error) {
	if err := sameWidth(len(past), len(m.Models)); err != nil {
		return nil, err
	}
	next := make([][]float64, len(past))
	for i, one := range m.Models {
		var err error
		if next[i], err = one.Forecast(past[i], horizon); errors.Is(err, ErrShort) && !slices.ContainsFunc(past[i], finite) {
			next[i], err = make([]float64, horizon), nil
		}
		if err != nil {
			return nil, err
		}
	}
	return next, nil
}

// Columns are models of each series of a graph, for what knows one series only: they forecast from what the others were until then.
func Columns(m GraphModel, values [][]float64) []Model {
	all := &columns{m: m, values: values, made: map[[2]int][][]float64{}}
	list := make([]Model, len(values))
	for i := range list {
		list[i] = column{all, i}
	}
	return list
}

// columns keep what was forecast for all series, since each of them is asked for.
type columns struct {
	m      GraphModel
	values [][]float64

	mu   sync.Mutex
	made map[[2]int][][]float64 // by the length of the past and the horizon
	kept int                    // values in it
}

// mostKept bounds the memory of columns.
const mostKept = 4_000_000

type column struct {
	of *columns
	at int
}

func (c column) Needs() int { return c.of.m.Needs() }

func (c column) Forecast(past []float64, horizon int) ([]float64, error) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	key := [2]int{len(past), horizon}
	next, is := c.of.made[key]
	if !is {
		if len(past) > len(c.of.values[c.at]) {
			return nil, fmt.Errorf("of the other series only %d values are known", len(c.of.values[c.at]))
		}
		var err error
		if next, err = c.of.m.Forecast(until(c.of.values, len(past)), horizon); err != nil {
			return nil, err
		}
		if c.of.kept += len(next) * horizon; c.of.kept > mostKept {
			clear(c.of.made)
			c.of.kept = len(next) * horizon
		}
		c.of.made[key] = next
	}
	return slices.Clone(next[c.at]), nil
}

func sameWidth(have, want int) error {
	if have != want {
		return fmt.Errorf("the model knows %d series, there are %d", want, have)
	}
	return nil
}

// GraphVerdict is what CompareGraph found about a kind. Errors and the interval are in standard deviations of each series, so that
// the metrics can be added up.
type GraphVerdict struct {
	Verdict
	Graph    GraphModel
	ByMetric []Errors // in the unit of the metric
}

// CompareGraph is Compare for a graph.
func CompareGraph(ctx context.Context, g Graph, o Options, probability float64, kinds ...GraphKind) ([]GraphVerdict, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	o = o.WithDefaults()
	train, measure := o.Split(g.Len())
	spreads := g.Spreads(o)
	var list []GraphVerdict
	for _, k := range kinds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v := GraphVerdict{Verdict: Verdict{Kind: k.Name()}}
		if v.Graph, v.Err = k.Train(ctx, g.until(train), o); v.Err == nil {
			v.Interval, v.Err = measured(g.forecasts(v.Graph, spreads, train, measure, o.Horizon), o.Horizon, probability)
		}
		if v.Err == nil {
			v.Test, v.ByMetric, v.Err = EvaluateGraph(v.Graph, g, o, v.Interval)
		}
		if errors.Is(v.Err, context.Canceled) || errors.Is(v.Err, context.DeadlineExceeded) {
			return nil, v.Err
		}
		list = append(list, v)
	}
	return list, nil
}

// Spreads are the standard deviations of the series where a model is trained.
func (g Graph) Spreads(o Options) []float64 {
	train, _ := o.Split(g.Len())
	var spreads []float64
	for _, values := range g.Values {
		spreads = append(spreads, scaleOf(values[:train]).Spread)
	}
	return spreads
}

// EvaluateGraph returns the errors of a model on what is held back for judging: of all series in their standard deviations, and of
// each metric in its unit.
func EvaluateGraph(m GraphModel, g Graph, o Options, i Interval) (all Errors, byMetric []Errors, err error) {
	o = o.WithDefaults()
	_, from := o.Split(g.Len())
	spreads := g.Spreads(o)
	parts := make([]tally, len(g.Metrics))
	var whole tally
	err = g.forecasts(m, spreads, from, g.Len(), o.Horizon)(func(column, h int, want, got float64) {
		whole.add(want, got, 1, h, i)
		parts[column%len(parts)].add(want, got, spreads[column], h, i)
	})
	for k := range parts {
		byMetric = append(byMetric, parts[k].errors(i))
	}
	return whole.errors(i), byMetric, err
}

// forecasts goes through all forecasts of a model between two indexes, in standard deviations.
func (g Graph) forecasts(m GraphModel, spreads []float64, from, to, horizon int) comparisons {
	return func(each func(column, h int, want, got float64)) error {
		n := 0
		for at := from; at+horizon <= to; at++ {
			next, err := m.Forecast(until(g.Values, at), horizon)
			if err != nil {
				return err
			}
			for column, values := range g.Values {
				if !finite(values[at-1]) {
					continue // nobody would forecast from a gap
				}
				for h, got := range next[column] {
					if want := values[at+h]; finite(want) {
						each(column, h, want/spreads[column], got/spreads[column])
						n++
					}
				}
			}
		}
		return enough(n, from, to, horizon)
	}
}
