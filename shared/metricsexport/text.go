package metricsexport

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

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

func with(labels, more map[string]string) map[string]string {
	all := maps.Clone(labels)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, more)
	return all
}

var (
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// Text writes samples in the text format of Prometheus, those of one name together.
func Text(samples []otlp.Sample) []byte {
	byName := map[string][]otlp.Sample{}
	for _, s := range samples {
		byName[s.Name] = append(byName[s.Name], s)
	}
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list := byName[name]
		if help := list[0].Help; help != "" {
			b.WriteString("# HELP " + name + " " + escapeHelp.Replace(help) + "\n")
		}
		kind := "gauge"
		if list[0].Counter {
			kind = "counter"
		}
		b.WriteString("# TYPE " + name + " " + kind + "\n")
		for _, s := range list {
			b.WriteString(name)
			for i, label := range slices.Sorted(maps.Keys(s.Labels)) {
				b.WriteString(map[bool]string{true: "{", false: ","}[i == 0] + label + `="` + escapeLabel.Replace(s.Labels[label]) + `"`)
			}
			if len(s.Labels) > 0 {
				b.WriteString("}")
			}
			b.WriteString(" " + strconv.FormatFloat(s.Value, 'g', -1, 64) + "\n")
		}
	}
	return b.Bytes()
}
