package metricsexport

import (
	"context"
	"maps"
	"strings"

	"github.com/littoral-project/littoral/shared/forecast"
	"github.com/littoral-project/littoral/shared/metricsexport/foretold"
	"github.com/littoral-project/littoral/shared/otlp"
	"github.com/littoral-project/littoral/shared/store"
)

// Samples returns all series as Prometheus sees them: one for each state of an enum, and of a forecast also its bounds, what
// it comes from and whether there is one.
func Samples(ctx context.Context, q store.Querier) ([]otlp.Sample, error) {
	metrics, err := List(ctx, q)
	if err != nil {
		return nil, err
	}
	values, err := store.Collect(ctx, q, "read values", scanValue, selectValues, "")
	if err != nil {
		return nil, err
	}
	byMetric := map[string][]Value{}
	for _, v := range values {
		byMetric[v.metric] = append(byMetric[v.metric], v.Value)
	}
	var all []otlp.Sample
	for _, m := range metrics {
		all = append(all, m.samples(byMetric[m.Name])...)
	}
	return all, nil
}

func (m *Metric) samples(values []Value) (all []otlp.Sample) {
	add := func(suffix, help string, labels map[string]string, value float64) {
		all = append(all, otlp.Sample{
			Name: m.Name + suffix, Help: help, Labels: labels, Value: value, Counter: m.Type == Counter && suffix == suffixes[Counter],
		})
	}
	for _, v := range values {
		switch m.Type {
		case Counter, Gauge:
			add(suffixes[m.Type], m.Help, v.Labels, *v.Value)
		case Info:
			add(suffixes[Info], m.Help, with(v.Labels, v.Info), 1)
		case Enum:
			for _, state := range m.States {
				is := 0.0
				if state == v.State {
					is = 1
				}
				add("", m.Help, with(v.Labels, map[string]string{m.Name: state}), is)
			}
		}
		if v.Lower != nil && v.Upper != nil {
			add("_lower", "Below it are few of the values that come", v.Labels, *v.Lower)
			add("_upper", "Above it are few of the values that come", v.Labels, *v.Upper)
		}
		all = append(all, m.foretold(&v)...)
		if v.Source != "" {
			add("_source", "Which kind of model the forecast comes from", with(v.Labels, map[string]string{"source": v.Source}), 1)
		}
	}
	if m.Forecast != nil {
		up := 0.0
		if m.Forecast.ToldAt != nil && m.Forecast.Failures == 0 {
			up = 1
		}
		add("_up", "1 while the forecast is made, 0 while that fails", m.Forecast.Labels, up)
	}
	return all
}

// foretold is what policies read: a value by the query that it is of, while it comes from a model.
func (m *Metric) foretold(v *Value) []otlp.Sample {
	f := m.Forecast
	if f == nil || v.Value == nil || v.Source == "" || forecast.IsNaive(v.Source) || len(f.Query) > foretold.MostQuery {
		return nil
	}
	labels := with(v.Labels, nil)
	for name := range f.Labels {
		delete(labels, name) // the query's series have them not
	}
	labels[foretold.Query], labels[foretold.By] = strings.TrimSpace(f.Query), m.Name
	return []otlp.Sample{
		{Name: foretold.Metric, Help: "What a model foresees of a query, while it beats the naive kinds", Labels: labels, Value: *v.Value},
		{Name: foretold.Seconds, Help: "How far ahead that is", Labels: labels, Value: float64(f.Ahead * f.Step)},
	}
}

func with(labels, more map[string]string) map[string]string {
	all := maps.Clone(labels)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, more)
	return all
}
