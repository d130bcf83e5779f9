package metricsexport

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/shared/forecast"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Question is the body of predict and of detect_drift.
type Question struct {
	Tag         string     `json:"model_tag"`
	ModelType   string     `json:"model_type"`  // the tag says it
	MetricType  int        `json:"metric_type"` // given back
	StepsBack   int        `json:"steps_back"`  // only as many of the newest values are used; 0 = all
	Input       Input      `json:"input_series"`
	History     []*float64 `json:"history_data"` // values before those of the input, if data_interruption
	HistorySize int        `json:"history_sample_size"`
	Interrupted bool       `json:"data_interruption"`
	Horizon     int        `json:"horizon"` // steps ahead; default 1
	Explain     bool       `json:"explain"`
}

// Input are series in ascending time: one as an array, or several in an object, input_1 first. null is a gap.
type Input struct {
	Array  bool
	Series [][]float64
}

// UnmarshalJSON accepts both forms.
func (in *Input) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '[' {
		var one []*float64
		if err := json.Unmarshal(b, &one); err != nil {
			return err
		}
		*in = Input{true, [][]float64{plain(one)}}
		return nil
	}
	var many map[string][]*float64
	if err := json.Unmarshal(b, &many); err != nil {
		return err
	}
	names := make([]string, 0, len(many))
	for name := range many {
		names = append(names, name)
	}
	// input_10 is after input_9
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	*in = Input{}
	for _, name := range names {
		in.Series = append(in.Series, plain(many[name]))
	}
	return nil
}

func plain(list []*float64) []float64 {
	values := make([]float64, len(list))
	for i, v := range list {
		values[i] = math.NaN()
		if v != nil {
			values[i] = *v
		}
	}
	return values
}

const mostInputs = forecast.MaxNodes * forecast.MaxMetrics

func (q *Question) complete() error {
	var faults problem.Faults
	if q.Tag == "" {
		faults.Add("model_tag", 0, "is missing")
	}
	if n := len(q.Input.Series); n == 0 || n > mostInputs {
		faults.Add("input_series", 0, "must be an array of values, or an object of 1 to %d such arrays", mostInputs)
	}
	q.Horizon = cmp.Or(q.Horizon, 1)
	if q.Horizon < 1 || q.Horizon > mostHorizon {
		faults.Add("horizon", 0, "must be 1 to %d", mostHorizon)
	}
	if q.StepsBack < 0 || q.HistorySize < 0 {
		faults.Add("steps_back", 0, "must not be negative, nor history_sample_size")
	}
	return faults.Err("the question is not understood")
}

// past is one series with what goes before it.
func (q *Question) past(series []float64) []float64 {
	if q.Interrupted {
		history := plain(q.History)
		if n := q.HistorySize; n > 0 && len(history) > n {
			history = history[len(history)-n:]
		}
		series = append(history, series...)
	}
	if n := q.StepsBack; n > 0 && len(series) > n {
		series = series[len(series)-n:]
	}
	return series
}

// Step is what is foreseen for one step.
type Step struct {
	Value float64 `json:"value"`
	Lower float64 `json:"lower"`
	Upper float64 `json:"upper"`
}

// Prediction is the answer about one series.
type Prediction struct {
	Value      float64   `json:"model_prediction"`
	Confidence float64   `json:"model_confidence"` // percent of held-back values that were within the interval
	Interval   string    `json:"95%_confidence_interval"`
	Steps      []Step    `json:"steps"`
	Influence  []float64 `json:"influence,omitempty"` // by how much each of the last values changes it, the newest last
}

// Predict answers in the form of the question: [[value], ...] for an array, else an object.
func (s Models) Predict(ctx context.Context, db *store.DB, q Question) (any, error) {
	if err := q.complete(); err != nil {
		return nil, err
	}
	m, err := GetModel(ctx, db, q.Tag)
	if err != nil {
		return nil, err
	}
	if m.Graph != nil {
		return s.predictGraph(ctx, m, q)
	}
	learnt, err := s.Load(ctx, m)
	if err != nil {
		return nil, err
	}
	var all []Prediction
	for i, series := range q.Input.Series {
		p, err := predict(m, learnt, q.past(series), q)
		if err != nil {
			return nil, &problem.Error{Kind: problem.Invalid, Detail: "there is no forecast", Fields: []problem.Field{{
				Path: "input_series[" + strconv.Itoa(i) + "]", Detail: err.Error(),
			}}}
		}
		all = append(all, *p)
	}
	switch {
	case q.Input.Array:
		rows := make([][]float64, len(all[0].Steps))
		for i, step := range all[0].Steps {
			rows[i] = []float64{step.Value}
		}
		return rows, nil
	case len(all) == 1:
		return struct {
			Prediction
			MetricType int `json:"metric_type"`
		}{all[0], q.MetricType}, nil
	}
	answer := map[string]any{"metric_type": q.MetricType}
	for i, p := range all {
		answer["metric_"+strconv.Itoa(i)] = p
	}
	return answer, nil
}

func (s Models) open(ctx context.Context, q store.Querier, tag string) (*Model, forecast.Model, error) {
	if err := s.Check(); err != nil {
		return nil, nil, err
	}
	m, err := GetModel(ctx, q, tag)
	if err != nil {
		return nil, nil, err
	}
	learnt, err := s.Load(ctx, m)
	return m, learnt, err
}

func predict(m *Model, learnt forecast.Model, past []float64, q Question) (*Prediction, error) {
	next, err := learnt.Forecast(past, q.Horizon)
	if err != nil {
		return nil, err
	}
	p := bounded(m, next, 1)
	if q.Explain {
		lags := min(m.Options.Lags, len(past))
		p.Influence, err = forecast.Influence(learnt, past, lags, q.Horizon)
	}
	return p, err
}

// bounded is what a model foresees, with its interval in a unit.
func bounded(m *Model, next []float64, unit float64) *Prediction {
	p := &Prediction{Value: next[0], Confidence: 100 * m.Test.Coverage, Steps: make([]Step, len(next))}
	for h, v := range next {
		half := m.Interval.At(h) * unit
		p.Steps[h] = Step{v, v - half, v + half}
	}
	p.Interval = fmt.Sprintf("%v to %v", p.Steps[0].Lower, p.Steps[0].Upper)
	return p
}

// Drifted reports whether one of the series is no longer what the model has learnt: more of its values are outside of the
// intervals than chance explains. The error is Invalid when there are too few values to tell.
func (s Models) Drifted(ctx context.Context, db *store.DB, q Question) (bool, error) {
	if err := q.complete(); err != nil {
		return false, err
	}
	m, learnt, err := s.open(ctx, db, q.Tag)
	if err != nil {
		return false, err
	}
	drifted := false
	for i, series := range q.Input.Series {
		one, err := drift(m, learnt, q.past(series))
		if err != nil {
			return false, &problem.Error{Kind: problem.Invalid, Detail: "drift cannot be told", Fields: []problem.Field{{
				Path: "input_series[" + strconv.Itoa(i) + "]", Detail: err.Error(),
			}}}
		}
		drifted = drifted || one
	}
	return drifted, nil
}

const (
	fewestTold = 20 // values that are compared
	sigmas     = 3  // beyond what is expected: of a thousand series that are as ever, about one is called drifted
)

func drift(m *Model, learnt forecast.Model, values []float64) (bool, error) {
	from := max(1, min(learnt.Needs(), len(values)))
	e, err := forecast.Evaluate(learnt, values, from, len(values), 1, m.Interval)
	if err != nil {
		return false, err
	}
	if e.N < fewestTold {
		return false, fmt.Errorf("%w: %d values can be compared, %d are needed", forecast.ErrShort, e.N, fewestTold)
	}
	n, outside := float64(e.N), 1-m.Interval.Probability
	// What was outside on held-back values is normal for this model, if it is more than was asked for.
	outside = max(outside, 1-m.Test.Coverage)
	return (1-e.Coverage)*n > n*outside+sigmas*math.Sqrt(n*outside*(1-outside))+1, nil
}
