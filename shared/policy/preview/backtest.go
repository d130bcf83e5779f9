package preview

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/render"
	"github.com/littoral-project/littoral/shared/policy/template"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// Question asks when a policy would have been violated.
type Question struct {
	Policy registry.Policy `json:"policy"`
	From   time.Time       `json:"from"`
	To     time.Time       `json:"to"`   // default: now
	Step   Step            `json:"step"` // between evaluations; default: the policy's interval, else 15s
}

// Step is a duration in Prometheus' format, or a number of seconds.
type Step time.Duration

// UnmarshalJSON accepts either format.
func (s *Step) UnmarshalJSON(raw []byte) error {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	switch value := value.(type) {
	case nil:
		return nil
	case float64:
		// Rounded to milliseconds, the precision of the telemetry store.
		if d := time.Duration(math.Round(value*1000)) * time.Millisecond; d > 0 && value <= 86400 {
			*s = Step(d)
			return nil
		}
	case string:
		if d, ok := template.ParseDuration(value); ok && d > 0 {
			*s = Step(d)
			return nil
		}
	}
	return problem.New(problem.Invalid, "must be a duration such as 15s, or a number of seconds")
}

const (
	defaultStep  = 15 * time.Second // the usual interval between evaluations of rules
	shortestStep = time.Second
)

// Check sets defaults and finds all faults in the times.
func (q *Question) Check(now time.Time) error {
	if q.To.IsZero() {
		q.To = now
	}
	if q.Step == 0 {
		interval, _ := template.ParseDuration(q.Policy.Properties.Interval) // is checked with the policy
		q.Step = Step(max(cmp.Or(interval, defaultStep), shortestStep))
	}
	if q.Policy.Name == "" {
		q.Policy.Name = "backtest"
	}
	step := time.Duration(q.Step)
	var faults problem.Faults
	switch {
	case q.From.IsZero():
		faults.Add("from", 0, "is required")
	case !q.From.Before(q.To):
		faults.Add("to", 0, "must be after from")
	case step < shortestStep:
		faults.Add("step", 0, "must be a second at least")
	case q.To.Sub(q.From)/step >= telemetry.MaxPoints:
		faults.Add("step", 0, "gives more than %d evaluations; take a longer step or a shorter time", telemetry.MaxPoints)
	}
	return faults.Err("the question is not valid")
}

// Past is the history of a policy's violations, as they would have been.
type Past struct {
	Expr        string    `json:"expr"`
	Evaluations int       `json:"evaluations"`
	Episodes    []Episode `json:"episodes"`
	Truncated   bool      `json:"truncated,omitempty"` // some episodes were left out
	Forecast    *Foreseen `json:"forecast,omitempty"`  // of a policy that looks ahead
	// What it looked at, violated or not, and what that is compared with; Limit is null where that is no number.
	Courses []telemetry.Course `json:"courses"`
	Limit   *float64           `json:"limit"`
}

// Episode is one period in which an alert would have fired.
type Episode struct {
	Labels  map[string]string `json:"labels"`
	From    time.Time         `json:"from"`    // violated since
	FiredAt time.Time         `json:"firedAt"` // after the pending interval
	To      time.Time         `json:"to"`      // violated until
	Peak    *float64          `json:"peak"`    // the worst value
}

const (
	maxEpisodes = 10_000
	maxCourses  = 20  // series that are shown
	shownPoints = 240 // of each of them
)

// Backtest evaluates the rendered spec of the question's policy over the period.
func Backtest(ctx context.Context, c *telemetry.Client, q Question, spec registry.Spec) (*Past, error) {
	if spec.Type != registry.TelemetrySpec {
		return nil, problem.New(problem.Conflict, "the policy has no expression to watch")
	}
	step := time.Duration(q.Step)
	found, err := c.QueryRange(ctx, spec.Expr, q.From, q.To, step)
	if err != nil {
		return nil, err
	}
	pending, _ := template.ParseDuration(q.Policy.Properties.PendingInterval)
	operator, _ := registry.Comparison(spec.ViolatedIf)
	past := &Past{Expr: spec.Expr, Evaluations: int(q.To.Sub(q.From)/step) + 1, Episodes: []Episode{}}
	if past.Courses, past.Limit, err = watched(ctx, c, q, spec); err != nil {
		return nil, err
	}
	for _, series := range found {
		past.Episodes = append(past.Episodes, episodes(series, step, pending, operator)...)
	}
	slices.SortStableFunc(past.Episodes, func(a, b Episode) int {
		return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To))
	})
	if ahead := q.Policy.Properties.Ahead(); ahead > 0 {
		plain, err := render.Present(spec.Expr)
		if err != nil {
			return nil, err
		}
		found, err := c.QueryRange(ctx, plain, q.From, q.To, step)
		if err != nil {
			return nil, err
		}
		var real []Episode
		for _, series := range found {
			real = append(real, episodes(series, step, pending, operator)...)
		}
		past.Forecast = foresight(past.Episodes, real, ahead, q.To)
	}
	if len(past.Episodes) > maxEpisodes {
		past.Episodes, past.Truncated = past.Episodes[:maxEpisodes], true
	}
	return past, nil
}

// watched is the course of what a policy compares, and the limit that it compares it with.
func watched(ctx context.Context, c *telemetry.Client, q Question, spec registry.Spec) ([]telemetry.Course, *float64, error) {
	expr, err := render.Watched(spec.Expr)
	if err != nil {
		return nil, nil, err
	}
	found, err := c.QueryRange(ctx, expr, q.From, q.To, max(time.Duration(q.Step), q.To.Sub(q.From)/shownPoints).Truncate(time.Millisecond))
	if err != nil {
		return nil, nil, err
	}
	var limit *float64
	_, text := registry.Comparison(spec.ViolatedIf)
	if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
		limit = &v
	}
	return telemetry.Courses(found, maxCourses), limit, nil
}

// episodes splits a series at its gaps: an expression yields a sample at each step at which it is violated. An episode
// that is shorter than the pending interval would not have fired.
func episodes(series telemetry.Series, step, pending time.Duration, operator string) []Episode {
	var list []Episode
	var open *Episode
	finish := func() {
		if open != nil && !open.FiredAt.After(open.To) {
			list = append(list, *open)
		}
		open = nil
	}
	for _, p := range series.Points {
		if open != nil && p.At.Sub(open.To) > step+step/2 {
			finish()
		}
		if open == nil {
			open = &Episode{Labels: series.Labels, From: p.At, FiredAt: p.At.Add(pending)}
		}
		open.To = p.At
		if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
			continue // JSON cannot represent NaN and Inf
		}
		if open.Peak == nil || worse(operator, p.Value, *open.Peak) {
			open.Peak = &p.Value
		}
	}
	finish()
	return list
}
