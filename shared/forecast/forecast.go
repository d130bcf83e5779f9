// Package forecast predicts the next values of a series from its past ones, and says how far its predictions can be
// trusted.
//
// A Kind trains a Model on a Series. Judge measures a model on values that it has not seen, Compare does so for several
// kinds beside the two naive ones (the last value repeats, the same time yesterday), and Best names the one to use: a
// model is worth its cost only where it beats both.
//
// Everything is repeatable to the bit on one kind of processor: the same series, options and seed give the same model.
// The package does no I/O.
package forecast

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Series is a measurement at equal distances in time. A gap is NaN.
type Series struct {
	Start  time.Time     // of the first value
	Step   time.Duration // between two values
	Values []float64
}

// Point is one measurement.
type Point struct {
	At    time.Time
	Value float64
}

// Regular puts points onto equal distances: each value is the mean of the points within its step, NaN where there are
// none. The points may come in any order; those that are not finite are left out.
func Regular(points []Point, step time.Duration) (Series, error) {
	if step <= 0 {
		return Series{}, fmt.Errorf("the step must be positive, it is %s", step)
	}
	points = slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return !finite(p.Value) })
	if len(points) == 0 {
		return Series{}, errors.New("the series has no values")
	}
	slices.SortFunc(points, func(a, b Point) int { return a.At.Compare(b.At) })
	start := points[0].At.Truncate(step)
	n := int(points[len(points)-1].At.Sub(start)/step) + 1
	if n > MaxValues {
		return Series{}, fmt.Errorf("the series has %d steps of %s, at most %d are possible", n, step, MaxValues)
	}
	s := Series{Start: start, Step: step, Values: make([]float64, n)}
	counts := make([]float64, n)
	for _, p := range points {
		i := int(p.At.Sub(start) / step)
		s.Values[i] += p.Value
		counts[i]++
	}
	for i := range s.Values {
		s.Values[i] /= counts[i] // 0/0 is NaN, a gap
	}
	return s, nil
}

// MaxValues bounds a series.
const MaxValues = 1_000_000

// Day returns how many steps a day has; 0 when a day is no whole number of steps.
func (s Series) Day() int {
	if s.Step <= 0 || (24*time.Hour)%s.Step != 0 {
		return 0
	}
	return int(24 * time.Hour / s.Step)
}

// Model predicts. It is safe for use by several goroutines at once.
type Model interface {
	// Needs returns how many past values Forecast makes use of. With too few it answers ErrShort.
	Needs() int
	// Forecast returns the next values after past, oldest first. Gaps in past count as the value before them.
	Forecast(past []float64, horizon int) ([]float64, error)
}

// Kind is a way to forecast.
type Kind interface {
	// Name is the word for it in options, tables and stored models.
	Name() string
	// Train makes a model from the series. It returns ErrShort when there are too few values, and the error of ctx when
	// it was cancelled.
	Train(ctx context.Context, s Series, o Options) (Model, error)
	// Decode reads a model that was written with encoding/json.
	Decode(data []byte) (Model, error)
}

// Options of a training. The zero value is replaced by the defaults.
type Options struct {
	Lags    int     `json:"lags"`    // past values that a model of lags sees; default 12
	Horizon int     `json:"horizon"` // steps ahead that it is trained for; default 12
	Seed    uint64  `json:"seed"`    // of everything random
	Test    float64 `json:"test"`    // share of the values, the newest, that Compare judges on; default 0.3
}

// WithDefaults returns o with everything unset at its default.
func (o Options) WithDefaults() Options {
	if o.Lags == 0 {
		o.Lags = 12
	}
	if o.Horizon == 0 {
		o.Horizon = 12
	}
	if o.Test == 0 {
		o.Test = 0.3
	}
	return o
}

// Split divides n values in order of time: those before measure are trained on, those before test measure the intervals,
// and the rest is for judging. The first part is five sevenths of what is not for judging.
func (o Options) Split(n int) (measure, test int) {
	rest := 1 - o.WithDefaults().Test
	return int(float64(n)*rest*5/7 + 0.5), int(float64(n)*rest + 0.5)
}

// ErrShort says that a series has too few values to train on, or to forecast from.
var ErrShort = errors.New("the series is too short")

// short is ErrShort with both numbers.
func short(have, want int) error {
	return fmt.Errorf("%w: %d values, %d are needed", ErrShort, have, want)
}

// Kinds are all ways to forecast, the two naive ones first.
var Kinds = []Kind{LastValue{}, Yesterday{}, HoltWinters{}, ARIMA{P: 5, D: 1, Q: 0}, Ridge{}, Trees{}, LSTM{}, GRU{}}

// KindOf returns the kind of that name.
func KindOf(name string) (Kind, error) {
	var names []string
	for _, k := range Kinds {
		if k.Name() == name {
			return k, nil
		}
		names = append(names, k.Name())
	}
	return nil, fmt.Errorf("there is no kind of model %q; there are %v", name, names)
}

// recent returns the last n values with gaps closed: each has the value before it, and those at the very beginning of the
// past the first one there is.
func recent(past []float64, n int) ([]float64, error) {
	if len(past) < n {
		return nil, short(len(past), n)
	}
	from := len(past) - n
	for from > 0 && !finite(past[from]) {
		from--
	}
	values := closed(past[from:])
	if values == nil {
		return nil, fmt.Errorf("%w: there are only gaps", ErrShort)
	}
	return values[len(values)-n:], nil
}

// closed returns the values with gaps closed; nil when all are gaps.
func closed(values []float64) []float64 {
	first := slices.IndexFunc(values, finite)
	if first < 0 {
		return nil
	}
	filled, last := slices.Clone(values), values[first]
	for i, v := range filled {
		if finite(v) {
			last = v
		}
		filled[i] = last
	}
	return filled
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// checkHorizon refuses a horizon that is none.
func checkHorizon(horizon int) error {
	if horizon < 1 || horizon > MaxHorizon {
		return fmt.Errorf("the horizon must be between 1 and %d steps, it is %d", MaxHorizon, horizon)
	}
	return nil
}

// MaxHorizon bounds how many steps one call may ask for.
const MaxHorizon = 10_000
