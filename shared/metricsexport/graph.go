package metricsexport

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/forecast"
	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// Graph are the nodes of a network, whose series are trained on together.
type Graph struct {
	Metrics []string    `json:"metrics"`         // queries, such as of cpu and of memory; each has at most one series of a node
	Label   string      `json:"node_label"`      // of the series, that names the node
	Links   [][2]string `json:"links,omitempty"` // between nodes; none: those that were measured (NetMA)
}

// KnownGraph is that of a model.
type KnownGraph struct {
	Graph
	Nodes    []string          `json:"nodes"`
	Spreads  []float64         `json:"spreads"`   // standard deviations, by node and within it by metric
	ByMetric []forecast.Errors `json:"by_metric"` // in its unit
}

const mostLinks = 4096

func (g *Graph) complete(faults *problem.Faults) {
	if g.Label == "" {
		g.Label = "node"
	}
	if !labelName.MatchString(g.Label) {
		faults.Add("graph.node_label", 0, "is no name of a label")
	}
	if n := len(g.Metrics); n == 0 || n > forecast.MaxMetrics {
		faults.Add("graph.metrics", 0, "must be 1 to %d queries", forecast.MaxMetrics)
	}
	for i, query := range g.Metrics {
		checkQuery("graph.metrics["+strconv.Itoa(i)+"]", query, faults)
	}
	if len(g.Links) > mostLinks {
		faults.Add("graph.links", 0, "are more than %d", mostLinks)
	}
	for i, l := range g.Links {
		if l[0] == "" || l[1] == "" {
			faults.Add("graph.links["+strconv.Itoa(i)+"]", 0, "must name two nodes")
		}
	}
}

func (o *Order) knownForGraphs() error {
	if _, err := forecast.GraphKindOf(strings.ToLower(o.ModelType)); err != nil {
		var names []string
		for _, k := range forecast.GraphKinds {
			names = append(names, k.Name())
		}
		return fmt.Errorf("is none of auto, %s, which are those for a graph", strings.Join(names, ", "))
	}
	return nil
}

// nodesOf asks for the series of all nodes. Of those that are named, one that is silent has gaps only; without names they are those
// that telemetry has. The error is Invalid where it is no graph.
func (g *Graph) nodesOf(ctx context.Context, client *telemetry.Client, named []string, from, to time.Time, step time.Duration) (forecast.Graph, error) {
	answers := make([]map[string]telemetry.Series, len(g.Metrics))
	nodes := slices.Clone(named)
	start, end := to, from
	for i, query := range g.Metrics {
		found, err := client.QueryRange(ctx, query, from, to, step)
		if err != nil {
			return forecast.Graph{}, err
		}
		answers[i] = map[string]telemetry.Series{}
		for _, s := range found {
			node := s.Labels[g.Label]
			if _, twice := answers[i][node]; twice || node == "" {
				return forecast.Graph{}, problem.New(problem.Invalid, "%s has two series of node %q, or one without the label %s", problem.Brief(query, 200), node, g.Label)
			}
			if answers[i][node] = s; named == nil && !slices.Contains(nodes, node) {
				nodes = append(nodes, node)
			}
			for _, p := range s.Points {
				start, end = earlier(start, p.At), later(end, p.At)
			}
		}
	}
	if named == nil {
		slices.Sort(nodes)
	}
	out := forecast.Graph{Start: start.Truncate(step), Step: step, Nodes: nodes, Metrics: g.Metrics}
	n := max(0, int(end.Sub(out.Start)/step)+1)
	if len(nodes) == 0 || n == 0 {
		return out, problem.New(problem.Invalid, "telemetry has no series for %s", problem.Brief(strings.Join(g.Metrics, ", "), 200))
	}
	for _, node := range nodes {
		for i := range g.Metrics {
			values := slices.Repeat([]float64{math.NaN()}, n)
			for _, p := range answers[i][node].Points {
				if at := int(p.At.Sub(out.Start) / step); !math.IsInf(p.Value, 0) {
					values[at] = p.Value
				}
			}
			out.Values = append(out.Values, values)
		}
	}
	if err := out.Check(); err != nil {
		return out, problem.New(problem.Invalid, "%v: narrow the queries", err)
	}
	return out, nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// graph is what to train on, with its links: those of the order, or those that were measured.
func (t Trainer) graph(ctx context.Context, o *Order) (forecast.Graph, error) {
	step := time.Duration(o.Step) * time.Second
	end := time.Now().UTC().Truncate(step)
	g, err := o.Graph.nodesOf(ctx, t.Telemetry, nil, end.Add(-time.Duration(o.Window)*time.Second), end, step)
	if err != nil {
		return g, err
	}
	named := o.Graph.Links
	if len(named) == 0 {
		measured, err := links.All(ctx, t.DB)
		if err != nil {
			return g, err
		}
		for i := range measured {
			named = append(named, [2]string{measured[i].Source, measured[i].Target})
		}
	}
	for _, l := range named {
		a, b := slices.Index(g.Nodes, l[0]), slices.Index(g.Nodes, l[1])
		if pair := [2]int{min(a, b), max(a, b)}; pair[0] >= 0 && a != b && !slices.Contains(g.Links, pair) { // others lead elsewhere
			g.Links = append(g.Links, pair)
		}
	}
	return g, nil
}

// trainGraph is train for a graph.
func trainGraph(ctx context.Context, g forecast.Graph, o *Order) (*trained, error) {
	options := o.options()
	kinds, wanted := forecast.GraphKinds, strings.ToLower(o.ModelType)
	if wanted != autoKind {
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(k forecast.GraphKind) bool { return k.Name() != wanted && !forecast.IsNaive(k.Name()) })
	}
	found, err := forecast.CompareGraph(ctx, g, options, confidence, kinds...)
	if err != nil {
		return nil, err
	}
	verdicts := make([]forecast.Verdict, len(found))
	for i := range found {
		verdicts[i] = found[i].Verdict
	}
	best, about, err := choose(verdicts, wanted, g.Len())
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(found, func(v forecast.GraphVerdict) bool { return v.Kind == best.Kind })
	m, err := kinds[at].Train(ctx, g, options)
	if err != nil {
		return nil, untrained(ctx, best.Kind, err)
	}
	about.complete(o, g.Start, g.Len())
	about.Graph = &KnownGraph{Graph: *o.Graph, Nodes: g.Nodes, Spreads: g.Spreads(options), ByMetric: found[at].ByMetric}
	about.Graph.Links = nil
	for _, l := range g.Links {
		about.Graph.Links = append(about.Graph.Links, [2]string{g.Nodes[l[0]], g.Nodes[l[1]]})
	}
	return &trained{m, best.Kind, about}, nil
}

// heldBackGraph is HeldBack for a graph. A model of other nodes or queries cannot be judged there: Invalid.
func (t Trainer) heldBackGraph(ctx context.Context, o *Order, tag string) (forecast.Errors, error) {
	m, err := GetModel(ctx, t.DB, tag)
	if err != nil {
		return forecast.Errors{}, err
	}
	if m.Graph == nil || !slices.Equal(m.Graph.Metrics, o.Graph.Metrics) || m.Graph.Label != o.Graph.Label {
		return forecast.Errors{}, problem.New(problem.Invalid, "%s foresees something else", m.Tag)
	}
	learnt, err := t.Models.loadGraph(ctx, m)
	if err != nil {
		return forecast.Errors{}, err
	}
	g, err := t.graph(ctx, o)
	if err != nil {
		return forecast.Errors{}, err
	}
	if !slices.Equal(g.Nodes, m.Graph.Nodes) {
		return forecast.Errors{}, problem.New(problem.Invalid, "%s knows other nodes than there are now", m.Tag)
	}
	e, _, err := forecast.EvaluateGraph(learnt, g, o.options(), forecast.Interval{})
	if errors.Is(err, forecast.ErrShort) {
		return e, problem.Wrap(problem.Invalid, err, "%s cannot be judged: %v", m.Tag, err)
	}
	return e, err
}

// predictGraph answers about all series of a graph: input_1 is the first metric of the first node, and so on.
func (s Models) predictGraph(ctx context.Context, m *Model, q Question) (any, error) {
	invalid := func(path, format string, args ...any) error {
		return &problem.Error{Kind: problem.Invalid, Detail: "there is no forecast", Fields: []problem.Field{{Path: path, Detail: fmt.Sprintf(format, args...)}}}
	}
	if q.Explain {
		return nil, invalid("explain", "is for models of one series")
	}
	if want := len(m.Graph.Spreads); q.Input.Array || len(q.Input.Series) != want {
		return nil, invalid("input_series", "must be an object of %d arrays: of each node %s", want, strings.Join(m.Graph.Metrics, ", "))
	}
	learnt, err := s.loadGraph(ctx, m)
	if err != nil {
		return nil, err
	}
	past := make([][]float64, len(q.Input.Series))
	for i, series := range q.Input.Series {
		if past[i] = q.past(series); len(past[i]) != len(past[0]) {
			return nil, invalid("input_series["+strconv.Itoa(i)+"]", "has %d values, the first one has %d", len(past[i]), len(past[0]))
		}
	}
	next, err := learnt.Forecast(past, q.Horizon)
	if err != nil {
		return nil, invalid("input_series", "%v", err)
	}
	answer := map[string]any{"metric_type": q.MetricType}
	for i, values := range next {
		answer["metric_"+strconv.Itoa(i)] = bounded(m, values, m.Graph.Spreads[i])
	}
	return answer, nil
}

// foreseer has the model for each series of a query.
type foreseer struct {
	one   forecast.Model // for any series; else
	graph forecast.GraphModel
	about *KnownGraph
	query int // which of the graph's

	seen    forecast.Graph
	columns []forecast.Model
}

// foreseer opens the model of a metric. The error is Invalid when it is of a graph that has another query.
func (c Computer) foreseer(ctx context.Context, f *Forecast, m *Model) (*foreseer, error) {
	if m.Graph == nil {
		one, err := c.Models.Load(ctx, m)
		return &foreseer{one: one}, err
	}
	query := slices.Index(m.Graph.Metrics, f.Query)
	if query < 0 {
		return nil, problem.New(problem.Invalid, "the model %s foresees %s", m.Tag, problem.Brief(strings.Join(m.Graph.Metrics, ", "), 300))
	}
	graph, err := c.Models.loadGraph(ctx, m)
	return &foreseer{graph: graph, about: m.Graph, query: query}, err
}

func (f *foreseer) needs() int {
	if f.graph != nil {
		return f.graph.Needs()
	}
	return f.one.Needs()
}

// look asks for all series of the graph.
func (f *foreseer) look(ctx context.Context, client *telemetry.Client, from, to time.Time, step time.Duration) (err error) {
	if f.graph == nil {
		return nil
	}
	if f.seen, err = f.about.nodesOf(ctx, client, f.about.Nodes, from, to, step); err == nil {
		f.columns = forecast.Columns(f.graph, f.seen.Values)
	}
	return err
}

// of returns a series with its model, none when it knows it not, and the unit of the model's interval.
func (f *foreseer) of(s telemetry.Series, step time.Duration) (forecast.Series, forecast.Model, float64, error) {
	if f.graph == nil {
		one, err := regular(s, step)
		return one, f.one, 1, err
	}
	node := slices.Index(f.about.Nodes, s.Labels[f.about.Label])
	if node < 0 {
		return forecast.Series{}, nil, 0, nil
	}
	at := node*len(f.about.Metrics) + f.query
	return forecast.Series{Start: f.seen.Start, Step: step, Values: f.seen.Values[at]}, f.columns[at], f.about.Spreads[at], nil
}
