package forecast

import (
	"context"
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
)

// windows are the training rows of a model of lags: each has Lags values, with gaps closed as Forecast does, and the
// Horizon values that follow them. Rows with a gap in what follows are left out.
type windows struct {
	lags, next [][]float64 // slices of the series
}

func windowsOf(values []float64, o Options) windows {
	var w windows
	filled := closed(values)
	gap := -1 // the last one seen
	for i, v := range values {
		if !finite(v) {
			gap = i
		}
		if next := i + 1 - o.Horizon; next > gap && next >= o.Lags {
			w.lags = append(w.lags, filled[next-o.Lags:next])
			w.next = append(w.next, values[next:i+1])
		}
	}
	return w
}

// fewestWindows is how many rows a model of lags is trained on at the least.
const fewestWindows = 8

// scale makes values comparable: (v − Mean) / Spread.
type scale struct {
	Mean   float64 `json:"mean"`
	Spread float64 `json:"spread"` // standard deviation; 1 for a constant series
}

func scaleOf(values []float64) scale {
	sum, squares, n := 0.0, 0.0, 0.0
	for _, v := range values {
		if finite(v) {
			sum, n = sum+v, n+1
		}
	}
	center := sum / max(n, 1)
	for _, v := range values {
		if finite(v) {
			squares += (v - center) * (v - center)
		}
	}
	s := scale{center, math.Sqrt(squares / max(n, 1))}
	if s.Spread <= 1e-12*math.Abs(center) || s.Spread == 0 {
		s.Spread = 1
	}
	return s
}

func (s scale) to(v float64) float64   { return (v - s.Mean) / s.Spread }
func (s scale) from(v float64) float64 { return v*s.Spread + s.Mean }

// Ridge is linear regression on the lags with a penalty on large weights, one set of weights for each step ahead.
type Ridge struct{}

// Name implements Kind.
func (Ridge) Name() string { return "ridge" }

// Decode implements Kind.
func (Ridge) Decode(data []byte) (Model, error) { return decoded[ridge](data) }

const penalty = 1e-3 // on the mean square of scaled values

// Train implements Kind: weights = (XᵀX + λI)⁻¹ XᵀY over all windows, in differences to the last value, so that a shift of
// the whole series changes nothing.
func (Ridge) Train(ctx context.Context, s Series, o Options) (Model, error) {
	o = o.WithDefaults()
	w := windowsOf(s.Values, o)
	if len(w.lags) < fewestWindows {
		return nil, short(len(s.Values), o.Lags+o.Horizon+fewestWindows-1)
	}
	m := ridge{Scale: scaleOf(s.Values)}
	m.Scale.Mean = 0 // differences have none
	n := o.Lags - 1
	if n == 0 {
		n = 1 // one lag has no difference: its column stays empty
	}
	xx, xy := mat.NewSymDense(n, nil), mat.NewDense(n, o.Horizon, nil)
	x := mat.NewVecDense(n, nil)
	for i, lags := range w.lags {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		last := lags[len(lags)-1]
		for k := range o.Lags - 1 {
			x.SetVec(k, m.Scale.to(lags[k]-last))
		}
		xx.SymRankOne(xx, 1, x)
		for h, y := range w.next[i] {
			change := m.Scale.to(y - last)
			for k := range n {
				xy.Set(k, h, xy.At(k, h)+x.AtVec(k)*change)
			}
		}
	}
	for k := range n {
		xx.SetSym(k, k, xx.At(k, k)+penalty*float64(len(w.lags)))
	}
	var factors mat.Cholesky
	if !factors.Factorize(xx) {
		return nil, errors.New("the series has no weights: its values are too large or too small")
	}
	var weights mat.Dense
	if err := factors.SolveTo(&weights, xy); err != nil {
		return nil, err
	}
	for h := range o.Horizon {
		m.Weights = append(m.Weights, mat.Col(nil, h, &weights))
	}
	m.Lags = o.Lags
	return m, nil
}

type ridge struct {
	Lags    int         `json:"lags"`
	Scale   scale       `json:"scale"`
	Weights [][]float64 `json:"weights"` // by step ahead, of all lags but the last
}

func (m ridge) Needs() int { return m.Lags }

func (m ridge) Forecast(past []float64, horizon int) ([]float64, error) {
	return rolled(past, m.Lags, horizon, func(lags []float64) []float64 {
		last := lags[len(lags)-1]
		next := make([]float64, len(m.Weights))
		for h, weights := range m.Weights {
			sum := 0.0
			for k, weight := range weights {
				if k < len(lags)-1 {
					sum += weight * m.Scale.to(lags[k]-last)
				}
			}
			next[h] = last + m.Scale.from(sum)
		}
		return next
	})
}

// rolled forecasts as far as asked with a model that knows some steps: beyond these it goes on from its own forecasts.
func rolled(past []float64, lags, horizon int, step func(lags []float64) []float64) ([]float64, error) {
	if err := checkHorizon(horizon); err != nil {
		return nil, err
	}
	seen, err := recent(past, lags)
	if err != nil {
		return nil, err
	}
	for len(seen) < lags+horizon {
		seen = append(seen, step(seen[len(seen)-lags:])...)
	}
	return seen[lags : lags+horizon], nil
}
