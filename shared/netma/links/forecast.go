package links

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/store"
)

// Metrics are the names of the figures in telemetry.
func Metrics() []string {
	return []string{
		"net_rtt_ms", "net_jitter_ms", "net_loss_percent", "net_throughput_kbps", "net_bandwidth_kbps", "net_retransmissions_percent",
		"net_link_energy_watts",
	}
}

// Of returns the figure that a metric is of; nil for one that is no figure.
func (f *Figures) Of(metric string) **float64 {
	if i := slices.Index(Metrics(), metric); i >= 0 {
		return []**float64{&f.RTT, &f.Jitter, &f.Loss, &f.Throughput, &f.Bandwidth, &f.Retransmissions, &f.Energy}[i]
	}
	return nil
}

// Forecast is what a model foresees of one figure of a link.
type Forecast struct {
	Source  string        `json:"-"`
	Target  string        `json:"-"`
	Metric  string        `json:"metric"` // whose figure it is
	FirstAt time.Time     `json:"firstAt"`
	Step    time.Duration `json:"stepNanos"`
	Values  []float64     `json:"values"` // each of the step that ends at its time
}

// At returns what is foreseen for a time. After the last step it stays as it was foreseen last.
func (f *Forecast) At(t time.Time) float64 {
	steps := (t.Sub(f.FirstAt) + f.Step - 1) / f.Step
	if t.Before(f.FirstAt) {
		steps = 0
	}
	return max(0, f.Values[min(int(steps), len(f.Values)-1)]) // a line that falls does so below zero
}

// Values that metrics export makes for metrics that are called like a figure, such as net_rtt_ms_forecast, and are of links. What is
// over says nothing any more.
const selectForecasts = `select s.metric, s.labels ->> 'source_node' as source, s.labels ->> 'target_node' as target, f.step_seconds, s.first_at, s.steps
from metric_series s join metric_forecasts f on f.metric = s.metric
where s.metric like 'net\_%' and s.labels ? 'source_node' and s.labels ? 'target_node' and jsonb_array_length(s.steps) > 0
and s.first_at + make_interval(secs => f.step_seconds * (jsonb_array_length(s.steps) - 1)) > now()
order by source, target, s.metric`

// Foreseen lists what is foreseen of links. Of two forecasts of one figure it is the first by name that counts.
func Foreseen(ctx context.Context, q store.Querier) ([]Forecast, error) {
	all, err := store.Collect(ctx, q, "read forecasts of links", scanForecast, selectForecasts)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(f Forecast) bool { return f.Metric == "" })
	return slices.CompactFunc(all, func(a, b Forecast) bool {
		return a.Source == b.Source && a.Target == b.Target && a.Metric == b.Metric
	}), nil
}

func scanForecast(row pgx.CollectableRow) (f Forecast, err error) {
	var name string
	var step int
	err = row.Scan(&name, &f.Source, &f.Target, &step, &f.FirstAt, &f.Values)
	f.Step = time.Duration(step) * time.Second
	for _, metric := range Metrics() {
		if name == metric || strings.HasPrefix(name, metric+"_") {
			f.Metric = metric
		}
	}
	return f, err
}

// Expected returns the measurements with what is foreseen for a time in place of what was measured. Links that are not measured are
// not foreseen either.
func Expected(measured []Measurement, foreseen []Forecast, at time.Time) []Measurement {
	out := slices.Clone(measured)
	number := make(map[[2]string]int, len(out))
	for i := range out {
		number[[2]string{out[i].Source, out[i].Target}] = i
	}
	for i := range foreseen {
		f := &foreseen[i]
		if k, there := number[[2]string{f.Source, f.Target}]; there {
			value := f.At(at)
			*out[k].Of(f.Metric) = &value
		}
	}
	return out
}

// Ahead is for how long what is foreseen counts where something is placed.
const Ahead = 30 * time.Minute

// Worst returns the measurements with the worst of what was measured and of what is foreseen for the next time.
func Worst(measured []Measurement, foreseen []Forecast, now time.Time) []Measurement {
	out := slices.Clone(measured)
	number := make(map[[2]string]int, len(out))
	for i := range out {
		number[[2]string{out[i].Source, out[i].Target}] = i
	}
	for i := range foreseen {
		f := &foreseen[i]
		k, there := number[[2]string{f.Source, f.Target}]
		if !there {
			continue
		}
		figure := out[k].Of(f.Metric)
		worse := func(a, b float64) bool { return a > b }
		if f.Metric == "net_throughput_kbps" || f.Metric == "net_bandwidth_kbps" {
			worse = func(a, b float64) bool { return a < b }
		}
		for at := f.FirstAt; !at.After(f.FirstAt.Add(f.Step * time.Duration(len(f.Values)-1))); at = at.Add(f.Step) {
			if at.Before(now) || at.After(now.Add(Ahead)) {
				continue
			}
			if v := f.At(at); *figure == nil || worse(v, **figure) {
				*figure = &v
			}
		}
	}
	return out
}
