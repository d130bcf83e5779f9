package forecast

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Errors say how far forecasts were from what came.
type Errors struct {
	MAE      float64 `json:"mae"`      // mean absolute error, in the unit of the series
	MSE      float64 `json:"mse"`      // mean squared error
	Coverage float64 `json:"coverage"` // share of values that were within the interval; NaN without intervals
	N        int     `json:"n"`        // values compared
}

// Interval is how far a value may be from its forecast, by steps ahead: with the probability that was asked for, it is
// within ± Half[h].
type Interval struct {
	Probability float64   `json:"probability"`
	Half        []float64 `json:"half"`
}

// At returns the half width h steps ahead, counted from 0; beyond those that were measured it is that of the last one.
func (i Interval) At(h int) float64 { return i.Half[min(h, len(i.Half)-1)] }

// comparisons calls each with every forecast beside what came, h steps ahead.
type comparisons func(each func(column, h int, want, got float64)) error

// forecasts are those from each value between two indexes.
func forecasts(m Model, values []float64, from, to, horizon int) comparisons {
	return func(each func(column, h int, want, got float64)) error {
		n := 0
		for at := from; at+horizon <= to; at++ {
			if !finite(values[at-1]) {
				continue // nobody would forecast from a gap
			}
			next, err := m.Forecast(values[:at], horizon)
			if err != nil {
				return err
			}
			for h, got := range next {
				if want := values[at+h]; finite(want) {
					each(0, h, want, got)
					n++
				}
			}
		}
		return enough(n, from, to, horizon)
	}
}

func enough(n, from, to, horizon int) error {
	if n == 0 {
		return fmt.Errorf("%w: no forecast of %d steps between value %d and value %d", ErrShort, horizon, from, to)
	}
	return nil
}

// tally adds up errors.
type tally struct {
	sum, squares float64
	n, within    int
}

// add counts a forecast h steps ahead; unit is what the errors are told in.
func (t *tally) add(want, got, unit float64, h int, i Interval) {
	miss := math.Abs(want - got)
	t.sum += miss * unit
	t.squares += miss * unit * miss * unit
	t.n++
	if len(i.Half) > 0 && miss <= i.At(h) {
		t.within++
	}
}

func (t *tally) errors(i Interval) Errors {
	n := float64(t.n)
	e := Errors{MAE: t.sum / n, MSE: t.squares / n, Coverage: math.NaN(), N: t.n}
	if len(i.Half) > 0 {
		e.Coverage = float64(t.within) / n
	}
	return e
}

// Evaluate forecasts from each value between the indexes from and to, and compares. The model must not have seen these
// values. An interval without Half is not judged.
func Evaluate(m Model, values []float64, from, to, horizon int, i Interval) (Errors, error) {
	var t tally
	err := forecasts(m, values, from, to, horizon)(func(_, h int, want, got float64) { t.add(want, got, 1, h, i) })
	if err != nil {
		return Errors{}, err
	}
	return t.errors(i), nil
}

// Measure returns the interval of that probability from the errors between the indexes from and to, which the model must
// not have seen.
func Measure(m Model, values []float64, from, to, horizon int, probability float64) (Interval, error) {
	return measured(forecasts(m, values, from, to, horizon), horizon, probability)
}

func measured(all comparisons, horizon int, probability float64) (Interval, error) {
	if probability <= 0 || probability >= 1 {
		return Interval{}, fmt.Errorf("the probability must be between 0 and 1, it is %g", probability)
	}
	misses := make([][]float64, horizon)
	err := all(func(_, h int, want, got float64) { misses[h] = append(misses[h], math.Abs(want-got)) })
	if err != nil {
		return Interval{}, err
	}
	i := Interval{Probability: probability}
	widest := 0.0
	for _, list := range misses {
		if len(list) > 0 { // else the step was always a gap
			slices.Sort(list)
			// The rank of split conformal prediction: exact for any number of errors that are exchangeable.
			rank := int(math.Ceil(probability*float64(len(list)+1))) - 1
			widest = list[min(rank, len(list)-1)]
		}
		i.Half = append(i.Half, widest)
	}
	return i, nil
}

// Verdict is what Compare found about a kind.
type Verdict struct {
	Kind     string   `json:"kind"`
	Model    Model    `json:"-"`
	Test     Errors   `json:"test"`
	Interval Interval `json:"interval"`
	Err      error    `json:"-"` // why there is no model
}

// Compare trains each kind on the first part of the series, measures its interval on the next, and judges it on the rest,
// in order of time: half, a fifth and three tenths, unless the options say otherwise. A kind that cannot be trained has its reason in Err.
func Compare(ctx context.Context, s Series, o Options, probability float64, kinds ...Kind) ([]Verdict, error) {
	o = o.WithDefaults()
	train, measure := o.Split(len(s.Values))
	var list []Verdict
	for _, k := range kinds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v := Verdict{Kind: k.Name()}
		seen := Series{Start: s.Start, Step: s.Step, Values: s.Values[:train]}
		if v.Model, v.Err = k.Train(ctx, seen, o); v.Err == nil {
			v.Interval, v.Err = Measure(v.Model, s.Values, train, measure, o.Horizon, probability)
		}
		if v.Err == nil {
			v.Test, v.Err = Evaluate(v.Model, s.Values, measure, len(s.Values), o.Horizon, v.Interval)
		}
		if errors.Is(v.Err, context.Canceled) || errors.Is(v.Err, context.DeadlineExceeded) {
			return nil, v.Err
		}
		list = append(list, v)
	}
	return list, nil
}

// Best returns the verdict with the smallest mean absolute error. A model is chosen only if it beats both naive kinds;
// otherwise it is the better of these. nil when there is none.
func Best(list []Verdict) *Verdict {
	var best, naive *Verdict
	for i := range list {
		v := &list[i]
		if v.Err != nil {
			continue
		}
		if best == nil || v.Test.MAE < best.Test.MAE {
			best = v
		}
		if IsNaive(v.Kind) && (naive == nil || v.Test.MAE < naive.Test.MAE) {
			naive = v
		}
	}
	if naive != nil && best.Test.MAE >= naive.Test.MAE {
		return naive
	}
	return best
}

// IsNaive reports whether a kind is one of those that a model must beat.
func IsNaive(kind string) bool { return kind == LastValue{}.Name() || kind == Yesterday{}.Name() }

// Influence says by how much each of the last values changes the forecast: the mean absolute change over all steps when
// that value is replaced by the mean of the others. The newest value is the last entry.
func Influence(m Model, past []float64, lags, horizon int) ([]float64, error) {
	values, err := recent(past, max(lags, min(m.Needs(), len(past))))
	if err != nil {
		return nil, err
	}
	plain, err := m.Forecast(values, horizon)
	if err != nil {
		return nil, err
	}
	influence := make([]float64, lags)
	center := mean(values[len(values)-lags:])
	for k := range influence {
		changed := slices.Clone(values)
		at := len(values) - lags + k
		if lags > 1 {
			changed[at] = (center*float64(lags) - values[at]) / float64(lags-1)
		}
		other, err := m.Forecast(changed, horizon)
		if err != nil {
			return nil, err
		}
		for h := range plain {
			influence[k] += math.Abs(other[h]-plain[h]) / float64(horizon)
		}
	}
	return influence, nil
}
