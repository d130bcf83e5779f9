package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"time"

	"github.com/littoral-project/littoral/shared/forecast"
	"github.com/littoral-project/littoral/shared/generator"
)

// graphs are the rows of the files as one graph, and of a generated world.
func graphs(ctx context.Context, files bool, made string, days int, step time.Duration, o forecast.Options, probability float64) ([]row, error) {
	var rows []row
	if files {
		g, err := unrelated(flag.Args(), step)
		if err != nil {
			return nil, err
		}
		if rows, err = compareGraph(ctx, fmt.Sprintf("%d series, all linked", len(g.Nodes)), g, o, probability); err != nil {
			return nil, err
		}
	}
	if made != "" {
		options, err := generator.Parse(made)
		if err != nil {
			return nil, err
		}
		w, err := generator.New(options)
		if err != nil {
			return nil, err
		}
		more, err := compareGraph(ctx, "world "+made, observed(w, time.Duration(days)*24*time.Hour, step), o, probability)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// unrelated are the files as nodes, each linked to all others, although they have nothing to do with each other; when they were measured does not count.
func unrelated(files []string, step time.Duration) (forecast.Graph, error) {
	g := forecast.Graph{Step: step, Metrics: []string{"value"}}
	shortest := math.MaxInt
	for i, file := range files {
		points, err := read(file)
		if err != nil {
			return g, err
		}
		s, err := forecast.Regular(points, step)
		if err != nil {
			return g, fmt.Errorf("%s: %w", file, err)
		}
		for j := range i {
			g.Links = append(g.Links, [2]int{j, i})
		}
		g.Nodes, g.Values = append(g.Nodes, file), append(g.Values, s.Values)
		shortest = min(shortest, len(s.Values))
	}
	for i := range g.Values {
		g.Values[i] = g.Values[i][:shortest]
	}
	return g, nil
}

// observed is the load of the nodes of a world over its links.
func observed(w *generator.World, length, step time.Duration) forecast.Graph {
	g := forecast.Graph{Start: w.Options.Start, Step: step, Metrics: []string{"cpu", "memory"}, Values: make([][]float64, 2*len(w.Nodes))}
	for _, n := range w.Nodes {
		g.Nodes = append(g.Nodes, n.Name)
	}
	for _, l := range w.Links {
		g.Links = append(g.Links, [2]int{l.A.Index, l.B.Index})
	}
	for s, more := w.Run(length, step), true; more; more = s.Next() {
		for i, n := range w.Nodes {
			cpu, memory, _ := s.Load(n)
			if !s.Present(n) {
				cpu, memory = math.NaN(), math.NaN()
			}
			g.Values[2*i], g.Values[2*i+1] = append(g.Values[2*i], 100*cpu), append(g.Values[2*i+1], 100*memory)
		}
	}
	return g
}

func compareGraph(ctx context.Context, name string, g forecast.Graph, o forecast.Options, probability float64) ([]row, error) {
	var verdicts []forecast.Verdict
	var took []float64
	for _, k := range forecast.GraphKinds {
		began := time.Now()
		found, err := forecast.CompareGraph(ctx, g, o, probability, k)
		if err != nil {
			return nil, err
		}
		verdicts, took = append(verdicts, found[0].Verdict), append(took, time.Since(began).Seconds())
	}
	rows := table(name, verdicts)
	for i := range rows {
		rows[i].Seconds = took[i]
	}
	return rows, nil
}
