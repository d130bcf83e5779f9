package forecast

import (
	"context"
	"fmt"
	"math"
)

// HoltWinters is triple exponential smoothing with an additive season of one day and a damped trend (Hyndman and
// Athanasopoulos, Forecasting: Principles and Practice, §8.3):
//
//	level  = α (y − season₋ₘ) + (1 − α)(level₋₁ + φ trend₋₁)
//	trend  = β (level − level₋₁) + (1 − β) φ trend₋₁
//	season = γ (y − level) + (1 − γ) season₋ₘ
//
// α, β and γ are those of a fixed grid with the smallest squared one-step error on the series.
type HoltWinters struct{}

// Name implements Kind.
func (HoltWinters) Name() string { return "holt-winters" }

// Decode implements Kind.
func (HoltWinters) Decode(data []byte) (Model, error) { return decoded[holtWinters](data) }

const damping = 0.98 // φ

// Train implements Kind. It needs two days to see one season repeat.
func (HoltWinters) Train(ctx context.Context, s Series, _ Options) (Model, error) {
	day := s.Day()
	if day < 2 {
		return nil, fmt.Errorf("a day is no whole number of steps of %s, or only one", s.Step)
	}
	values := closed(s.Values)
	if len(values) < 2*day {
		return nil, short(len(values), 2*day)
	}
	best, least := holtWinters{Season: day}, math.Inf(1)
	for _, alpha := range []float64{0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95} {
		for _, beta := range []float64{0, 0.01, 0.05, 0.2} {
			for _, gamma := range []float64{0, 0.05, 0.1, 0.3} {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				m := holtWinters{Season: day, Alpha: alpha, Beta: beta, Gamma: gamma}
				if _, squares := m.smooth(values); squares < least {
					best, least = m, squares
				}
			}
		}
	}
	return best, nil
}

type holtWinters struct {
	Season int     `json:"season"`
	Alpha  float64 `json:"alpha"`
	Beta   float64 `json:"beta"`
	Gamma  float64 `json:"gamma"`
}

// Needs returns two seasons for the start, and two in which it settles.
func (m holtWinters) Needs() int { return 4 * m.Season }

func (m holtWinters) Forecast(past []float64, horizon int) ([]float64, error) {
	if err := checkHorizon(horizon); err != nil {
		return nil, err
	}
	values, err := recent(past, min(len(past), m.Needs()))
	if err != nil {
		return nil, err
	}
	if len(values) < 2*m.Season {
		return nil, short(len(values), 2*m.Season)
	}
	state, _ := m.smooth(values)
	next := make([]float64, horizon)
	trend, damped := 0.0, 1.0
	for h := range next {
		damped *= damping
		trend += damped * state.trend
		next[h] = state.level + trend + state.season[(len(values)+h)%m.Season]
	}
	return next, nil
}

// smoothed is the state after the last value.
type smoothed struct {
	level, trend float64
	season       []float64 // by index modulo the season
}

// smooth runs over the values and returns the state at their end and the sum of squared one-step errors.
func (m holtWinters) smooth(values []float64) (smoothed, float64) {
	first, second := mean(values[:m.Season]), mean(values[m.Season:2*m.Season])
	state := smoothed{
		level: first, trend: (second - first) / float64(m.Season), season: make([]float64, m.Season),
	}
	for i := range state.season {
		state.season[i] = values[i] - first
	}
	squares := 0.0
	for i, y := range values[m.Season:] {
		at := i % m.Season // both counts begin with a season's first value
		expected := state.level + damping*state.trend
		miss := y - expected - state.season[at]
		squares += miss * miss
		level := m.Alpha*(y-state.season[at]) + (1-m.Alpha)*expected
		state.trend = m.Beta*(level-state.level) + (1-m.Beta)*damping*state.trend
		state.season[at] = m.Gamma*(y-level) + (1-m.Gamma)*state.season[at]
		state.level = level
	}
	return state, squares
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
