package metricsexport

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/forecast"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// Forecast is how a model foresees the values of a metric.
type Forecast struct {
	Metric    string            `json:"-"`
	Query     string            `json:"telemetry_metric"`
	Model     string            `json:"model_name"`
	ModelType string            `json:"model_type"`
	Step      int               `json:"step_in_seconds"`
	Sequence  int               `json:"sequence_size"`
	Ahead     int               `json:"steps_ahead"`
	Labels    map[string]string `json:"labels"` // beside those of the query's series
	DueAt     time.Time         `json:"due_at"`
	ToldAt    *time.Time        `json:"told_at,omitempty"`
	Failures  int               `json:"failures"`      // in a row
	Why       string            `json:"why,omitempty"` // of the last one
}

// ForecastOrder is the body of create_model_metric.
type ForecastOrder struct {
	Type      Type              `json:"type"`
	Name      string            `json:"metric_name"`
	Help      string            `json:"metric_info"`
	Labels    map[string]string `json:"labels"`
	States    []string          `json:"states"`
	Query     string            `json:"telemetry_metric"`
	Route     string            `json:"model_route"` // the path of a model service; here the model itself is asked
	Model     string            `json:"model_name"`
	ModelType string            `json:"model_type"`
	Step      int               `json:"step_in_seconds"`
	Sequence  int               `json:"sequence_size"`
	Ahead     int               `json:"steps_ahead"`
}

func checkQuery(path, query string, faults *problem.Faults) {
	switch {
	case strings.TrimSpace(query) == "":
		faults.Add(path, 0, "is missing")
	case len(query) > maxQuery:
		faults.Add(path, 0, "has more than %d bytes", maxQuery)
	}
}

func (o *ForecastOrder) complete() (*Forecast, error) {
	var faults problem.Faults
	if o.Type != "" && o.Type != Gauge {
		faults.Add("type", 0, "must be 2 (gauge): what is foreseen is a number that rises and falls")
	}
	checkName("metric_name", o.Name, &faults)
	checkLabels("labels", o.Labels, &faults)
	checkQuery("telemetry_metric", o.Query, &faults)
	if len(o.Help) > maxText {
		faults.Add("metric_info", 0, "has more than %d bytes", maxText)
	}
	if _, _, err := parseTag(strings.TrimSuffix(o.Model, ":champion")); err != nil {
		faults.Add("model_name", 0, "is no tag of a model: name:version or name:latest")
	}
	in := func(path string, value *int, fallback, low, high int) {
		if *value = cmp.Or(*value, fallback); *value < low || *value > high {
			faults.Add(path, 0, "must be %d to %d", low, high)
		}
	}
	in("step_in_seconds", &o.Step, defaultStep, 5, 86400)
	in("sequence_size", &o.Sequence, 12, 1, telemetry.MaxPoints/2)
	in("steps_ahead", &o.Ahead, 1, 1, mostHorizon)
	if !strings.Contains(o.Model, ":") {
		o.Model += ":latest"
	}
	return &Forecast{
		Metric: o.Name, Query: o.Query, Model: o.Model, ModelType: o.ModelType, Step: o.Step, Sequence: o.Sequence, Ahead: o.Ahead,
		Labels: with(o.Labels, nil),
	}, faults.Err("the metric is not understood")
}

const (
	insertForecast = `insert into metric_forecasts (metric, query, model, model_type, step_seconds, sequence, ahead, labels)
values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (metric) do update set query = excluded.query, model = excluded.model,
model_type = excluded.model_type, step_seconds = excluded.step_seconds, sequence = excluded.sequence, ahead = excluded.ahead,
labels = excluded.labels, due_at = now(), failures = 0, why = ''`

	selectDue = selectMetrics + ` where f.due_at <= now() order by f.due_at, m.name limit 500`

	tell = `update metric_forecasts set told_at = now(), failures = 0, why = '', due_at = greatest(now(), $2::timestamptz + make_interval(secs => step_seconds))
where metric = $1 and query = $3 and model = $4`

	fail = `update metric_forecasts set failures = failures + 1, why = $3,
due_at = now() + make_interval(secs => least(step_seconds * (failures + 1), 600)) where metric = $1 and due_at = $2`

	deleteEnded = `delete from metric_series where metric = $1 and not (labels = any ($2::jsonb[]))`

	upsertForecasts = `insert into metric_series
(metric, labels, value, lower, upper, source, error, naive_error, judged_at, steps, first_at)
select $1, u.* from unnest($2::jsonb[], $3::float8[], $4::float8[], $5::float8[], $6::text[], $7::float8[], $8::float8[],
$9::timestamptz[], $10::jsonb[], $11::timestamptz[]) u
on conflict (metric, labels) do update set value = excluded.value, lower = excluded.lower, upper = excluded.upper, source = excluded.source,
error = excluded.error, naive_error = excluded.naive_error, judged_at = excluded.judged_at, steps = excluded.steps,
first_at = excluded.first_at, at = now()`
)

// Computer makes forecasts.
type Computer struct {
	DB        *store.DB
	Telemetry *telemetry.Client
	Models    Models
}

// Create stores a metric that a model foresees, after its first values were made: what cannot be made is refused at once
// with the reason (Invalid). A metric of that name with given values is a Conflict.
func (c Computer) Create(ctx context.Context, o ForecastOrder, by string) error {
	f, err := o.complete()
	if err != nil {
		return err
	}
	now := time.Now()
	values, err := c.foresee(ctx, f, nil, now)
	if k := problem.KindOf(err); k == problem.NotFound {
		return problem.Wrap(problem.Invalid, err, "the first values cannot be made: %v", err)
	}
	if err != nil {
		return err
	}
	return c.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		made := Creation{Type: Gauge, Name: o.Name, Help: o.Help, Labels: o.Labels}
		m, err := made.define(ctx, tx, by)
		if err != nil {
			return err
		}
		if m.Forecast == nil {
			var given bool
			if err := tx.QueryRow(ctx, `select exists (select from metric_series where metric = $1)`, o.Name).Scan(&given); err != nil {
				return err
			}
			if given {
				return problem.New(problem.Conflict, "%s has values that were sent", o.Name)
			}
		}
		_, err = tx.Exec(ctx, insertForecast, f.Metric, f.Query, f.Model, f.ModelType, f.Step, f.Sequence, f.Ahead, f.Labels)
		if err != nil {
			return store.Classify(err)
		}
		return store.Classify(write(ctx, tx, f, values, now))
	})
}

// Due makes all values that are due, in one deadline. What one metric fails with is kept with it; the error is that of the
// store alone.
func (c Computer) Due(ctx context.Context) (told, failed int, err error) {
	due, err := store.Collect(ctx, c.DB, "read what is due", scanMetric, selectDue)
	if err != nil {
		return 0, 0, err
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	var errs []error
	slots := make(chan struct{}, 4)
	for _, m := range due {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			why, err := c.one(ctx, m)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				errs = append(errs, err)
			case why != nil:
				failed++
			default:
				told++
			}
		})
	}
	group.Wait()
	return told, failed, errors.Join(errs...)
}

// one makes the values of one metric. why is what they cannot be made for.
func (c Computer) one(ctx context.Context, m *Metric) (why, err error) {
	f := m.Forecast
	former, err := store.Collect(ctx, c.DB, "read values", scanValue, selectValues, f.Metric)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	values, why := c.foresee(ctx, f, former, now)
	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second) // the reason is kept when the time is up
	defer cancel()
	return why, c.DB.Tx(settle, func(ctx context.Context, tx *store.Tx) error {
		if why != nil {
			_, err := tx.Exec(ctx, fail, f.Metric, f.DueAt, problem.Brief(why.Error(), maxText))
			return err
		}
		// the row of the metric first: whoever deletes it locks it before its series
		var one int
		err := tx.QueryRow(ctx, `select 1 from metrics where name = $1 for update`, f.Metric).Scan(&one)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return write(ctx, tx, f, values, f.DueAt)
	})
}

// foreseen is the value of one series.
type foreseen struct {
	labels              map[string]string
	value, lower, upper float64
	steps               []float64 // of which value is the last
	firstAt             time.Time
	judgement
}

// judgement is what is known of how good the model is on a series.
type judgement struct {
	source      string
	err, naive  *float64
	half        float64
	at          *time.Time
	lastValue   forecast.Model
	chosenModel forecast.Model
}

const (
	judgedFor  = time.Hour // how long a judgement holds
	judgedEach = 50        // series of a metric in one call: the others keep what they have until the next
	tooOld     = 3         // steps since the last value beyond which a series has ended
)

// foresee asks for the series and forecasts each. A model's forecast is used only while it beats both naive kinds on the
// last day of that series; else the better naive one is.
func (c Computer) foresee(ctx context.Context, f *Forecast, former []named, now time.Time) ([]foreseen, error) {
	m, err := GetModel(ctx, c.DB, f.Model)
	if err != nil {
		return nil, err
	}
	foreseer, err := c.foreseer(ctx, f, m)
	if err != nil {
		return nil, err
	}
	known := map[string]Value{}
	judge := len(former) == 0
	for _, v := range former {
		known[text(v.Labels)] = v.Value
		judge = judge || v.JudgedAt == nil || now.Sub(*v.JudgedAt) > judgedFor || v.Source == forecast.Yesterday{}.Name()
	}
	step := time.Duration(f.Step) * time.Second
	day := forecast.Series{Step: step}.Day()
	points := max(f.Sequence, foreseer.needs())
	if judge {
		points = max(points, day+max(day, foreseer.needs())+f.Ahead)
	}
	points = min(points, telemetry.MaxPoints-1)
	end := now.UTC().Truncate(step)
	found, err := c.Telemetry.QueryRange(ctx, f.Query, end.Add(-time.Duration(points)*step), end, step)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, problem.New(problem.Invalid, "telemetry has no series for %s", problem.Brief(f.Query, 200))
	case len(found) > MaxSeries:
		return nil, problem.New(problem.Invalid, "telemetry has %d series for %s, at most %d are possible", len(found), problem.Brief(f.Query, 200), MaxSeries)
	}
	if err := foreseer.look(ctx, c.Telemetry, end.Add(-time.Duration(points)*step), end, step); err != nil {
		return nil, err
	}
	var values []foreseen
	seen := map[string]bool{}
	judged := 0
	why := errors.New("no series has a value now")
	for _, one := range found {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		delete(one.Labels, "__name__")
		labels := with(one.Labels, f.Labels)
		if seen[text(labels)] {
			return nil, problem.New(problem.Invalid, "two series of the query have the same labels once those of the metric are added")
		}
		seen[text(labels)] = true
		s, learnt, unit, err := foreseer.of(one, step)
		if err != nil || learnt == nil || end.Sub(s.Start.Add(time.Duration(len(s.Values)-1)*step)) > tooOld*step {
			continue // only gaps, it has ended, or the model does not know it
		}
		before, is := known[text(labels)]
		var j judgement
		if is && before.JudgedAt != nil && (now.Sub(*before.JudgedAt) <= judgedFor || judged >= judgedEach) {
			j = kept(before, m, learnt, day)
		} else {
			judged++
			j = judgeOn(m, learnt, s, day, f.Ahead, m.Interval.At(f.Ahead-1)*unit, now)
		}
		next, err := j.chosenModel.Forecast(s.Values, f.Ahead)
		if err != nil && !forecast.IsNaive(j.source) { // too short for the model, perhaps
			j.chosenModel, j.source = j.lastValue, forecast.LastValue{}.Name()
			next, err = j.chosenModel.Forecast(s.Values, f.Ahead)
		}
		if err != nil {
			why = err
			continue
		}
		v := next[f.Ahead-1]
		if math.IsInf(j.half, 0) || slices.ContainsFunc(next, func(v float64) bool { return math.IsInf(v, 0) || math.IsNaN(v) }) {
			why = errors.New("the forecast grows beyond all bounds")
			continue
		}
		values = append(values, foreseen{labels, v, v - j.half, v + j.half, next, s.Start.Add(time.Duration(len(s.Values)) * step), j})
	}
	if len(values) == 0 {
		return nil, problem.Wrap(problem.Invalid, why, "there is no forecast: %v", why)
	}
	return values, nil
}

// naive are the two naive kinds on a series.
func naive(day int) (last, yesterday forecast.Model) {
	last, _ = forecast.LastValue{}.Train(context.Background(), forecast.Series{}, forecast.Options{})
	if day > 0 {
		data, _ := json.Marshal(map[string]int{"season": day})
		yesterday, _ = forecast.Yesterday{}.Decode(data)
	}
	return last, yesterday
}

// kept is the judgement that was stored.
func kept(v Value, m *Model, learnt forecast.Model, day int) judgement {
	last, yesterday := naive(day)
	j := judgement{source: v.Source, err: v.Error, naive: v.NaiveError, at: v.JudgedAt, lastValue: last, chosenModel: last}
	if v.Lower != nil && v.Upper != nil {
		j.half = (*v.Upper - *v.Lower) / 2
	}
	switch {
	case v.Source == m.Kind:
		j.chosenModel = learnt
	case v.Source == forecast.Yesterday{}.Name() && yesterday != nil:
		j.chosenModel = yesterday
	default:
		j.source = forecast.LastValue{}.Name()
	}
	return j
}

// judgeOn compares the model with the naive kinds on the last day of a series, or on what there is of it. half is the interval's
// where that is too little.
func judgeOn(m *Model, learnt forecast.Model, s forecast.Series, day, ahead int, half float64, now time.Time) judgement {
	last, yesterday := naive(day)
	j := judgement{source: forecast.LastValue{}.Name(), lastValue: last, chosenModel: last, at: &now, half: half}
	to := len(s.Values)
	from := max(1, to-max(day, fewestValues))
	measure := func(model forecast.Model) (mae float64, half float64, ok bool) {
		if from < model.Needs() && to-model.Needs() < fewestValues {
			return 0, 0, false
		}
		i, err := forecast.Measure(model, s.Values, max(from, model.Needs()), to, ahead, confidence)
		if err != nil {
			return 0, 0, false
		}
		e, err := forecast.Evaluate(model, s.Values, max(from, model.Needs()), to, ahead, forecast.Interval{})
		return e.MAE, i.At(ahead - 1), err == nil
	}
	best := math.Inf(1)
	if mae, half, ok := measure(last); ok {
		best, j.half = mae, half
	}
	if yesterday != nil {
		if mae, half, ok := measure(yesterday); ok && mae < best {
			best, j.half, j.source, j.chosenModel = mae, half, forecast.Yesterday{}.Name(), yesterday
		}
	}
	if math.IsInf(best, 1) {
		return j // too little is known of it: nothing but the last value can be said
	}
	j.naive = &best
	if mae, half, ok := measure(learnt); ok {
		j.err = &mae
		if mae < best {
			j.half, j.source, j.chosenModel = half, m.Kind, learnt
		}
	}
	return j
}

// write replaces the series of a metric. The next values are due a step after those of due.
func write(ctx context.Context, tx *store.Tx, f *Forecast, values []foreseen, due time.Time) error {
	tag, err := tx.Exec(ctx, tell, f.Metric, due, f.Query, f.Model)
	if err != nil || tag.RowsAffected() == 0 { // it was changed or deleted meanwhile
		return err
	}
	slices.SortFunc(values, func(a, b foreseen) int { return strings.Compare(text(a.labels), text(b.labels)) })
	var (
		labels, steps       []string
		first               []time.Time
		value, lower, upper []float64
		source              []string
		errs, naives        []*float64
		judged              []*time.Time
	)
	for _, v := range values {
		encoded, err := json.Marshal(v.labels)
		if err != nil {
			return fmt.Errorf("encode labels: %w", err)
		}
		coming, err := json.Marshal(v.steps)
		if err != nil {
			return fmt.Errorf("encode steps: %w", err)
		}
		steps, first = append(steps, string(coming)), append(first, v.firstAt)
		labels, value, lower, upper = append(labels, string(encoded)), append(value, v.value), append(lower, v.lower), append(upper, v.upper)
		source, errs, naives, judged = append(source, v.source), append(errs, v.err), append(naives, v.naive), append(judged, v.at)
	}
	if _, err := tx.Exec(ctx, deleteEnded, f.Metric, labels); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, upsertForecasts, f.Metric, labels, value, lower, upper, source, errs, naives, judged, steps, first)
	return err
}
