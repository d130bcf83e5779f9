package forecast

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

// ARIMA is an autoregressive integrated moving average of order (P, D, Q) (Box, Jenkins, Reinsel: Time Series Analysis,
// §4). On the series w, differenced D times,
//
//	wₜ = c + φ₁wₜ₋₁ + … + φₚwₜ₋ₚ + eₜ + θ₁eₜ₋₁ + … + θ_q eₜ₋q
//
// The coefficients start from two regressions (Hannan and Rissanen 1982); with Q > 0 the sum of squared errors is then
// made small by the simplex search of Nelder and Mead.
type ARIMA struct{ P, D, Q int }

// Name implements Kind.
func (ARIMA) Name() string { return "arima" }

// Decode implements Kind.
func (ARIMA) Decode(data []byte) (Model, error) { return decoded[arima](data) }

const (
	mostOrder  = 64     // of P and Q
	settled    = 100    // values after which early errors no longer matter
	mostValues = 20_000 // the newest; training takes time in proportion
)

// Train implements Kind.
func (k ARIMA) Train(ctx context.Context, s Series, _ Options) (Model, error) {
	if k.P < 0 || k.D < 0 || k.Q < 0 || k.P > mostOrder || k.D > 2 || k.Q > mostOrder {
		return nil, fmt.Errorf("arima(%d,%d,%d): p and q are 0 to %d, d is 0 to 2", k.P, k.D, k.Q, mostOrder)
	}
	values := closed(s.Values[max(0, len(s.Values)-mostValues):])
	if want := 4*(k.P+k.Q+1) + k.D + settled/10; len(values) < want {
		return nil, short(len(values), want)
	}
	m := arima{D: k.D, Scale: scaleOf(values)}
	w := make([]float64, len(values))
	for i, v := range values {
		w[i] = m.Scale.to(v)
	}
	w = differenced(w, k.D)
	start, err := k.regress(w)
	if err != nil {
		return nil, err
	}
	m.set(k, start)
	if k.Q == 0 {
		return m, nil
	}
	problem := optimize.Problem{Func: func(x []float64) float64 {
		var try arima
		try.set(k, x)
		return sumOfSquares(try.errors(w))
	}, Status: func() (optimize.Status, error) {
		if err := ctx.Err(); err != nil {
			return optimize.Failure, err
		}
		return optimize.NotTerminated, nil
	}}
	found, err := optimize.Minimize(problem, start, &optimize.Settings{FuncEvaluations: 300 * len(start)}, &optimize.NelderMead{})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err == nil && found != nil {
		m.set(k, found.X)
	}
	return m, nil
}

// regress returns c, φ and θ by ordinary least squares. The errors that θ needs are those of a long autoregression.
func (k ARIMA) regress(w []float64) ([]float64, error) {
	errs := make([]float64, len(w))
	if k.Q > 0 {
		long := min(k.P+k.Q+10, len(w)/4)
		first, err := ARIMA{P: long}.regress(w)
		if err != nil {
			return nil, err
		}
		var m arima
		m.set(ARIMA{P: long}, first)
		errs = m.errors(w)
	}
	n, from := 1+k.P+k.Q, max(k.P, k.Q)
	xx, xy := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	row := mat.NewVecDense(n, nil)
	for t := from; t < len(w); t++ {
		row.SetVec(0, 1)
		for i := range k.P {
			row.SetVec(1+i, w[t-1-i])
		}
		for i := range k.Q {
			row.SetVec(1+k.P+i, errs[t-1-i])
		}
		xx.SymRankOne(xx, 1, row)
		xy.AddScaledVec(xy, w[t], row)
	}
	for i := range n {
		xx.SetSym(i, i, xx.At(i, i)+1e-8*float64(len(w))) // a constant series has no other solution
	}
	var factors mat.Cholesky
	var solution mat.VecDense
	if !factors.Factorize(xx) {
		return nil, fmt.Errorf("arima(%d,%d,%d): the series has no coefficients", k.P, k.D, k.Q)
	}
	if err := factors.SolveVecTo(&solution, xy); err != nil {
		return nil, err
	}
	return solution.RawVector().Data, nil
}

type arima struct {
	D     int       `json:"d"`
	Scale scale     `json:"scale"`
	C     float64   `json:"c"`
	Phi   []float64 `json:"phi"`
	Theta []float64 `json:"theta"`
}

func (m *arima) set(k ARIMA, x []float64) {
	m.C, m.Phi, m.Theta = x[0], append([]float64{}, x[1:1+k.P]...), append([]float64{}, x[1+k.P:]...)
}

// errors returns eₜ of the differenced series, 0 before the orders have been filled.
func (m arima) errors(w []float64) []float64 {
	errs := make([]float64, len(w))
	for t := max(len(m.Phi), len(m.Theta)); t < len(w); t++ {
		errs[t] = w[t] - m.next(w[:t], errs[:t])
	}
	return errs
}

// next is the expected value after w, whose errors are known.
func (m arima) next(w, errs []float64) float64 {
	sum := m.C
	for i, phi := range m.Phi {
		sum += phi * w[len(w)-1-i]
	}
	for i, theta := range m.Theta {
		sum += theta * errs[len(errs)-1-i]
	}
	return sum
}

// fewest is how many values there must be; with Needs the errors before the end are known better.
func (m arima) fewest() int { return m.D + len(m.Phi) + len(m.Theta) + 1 }

func (m arima) Needs() int {
	if len(m.Theta) > 0 {
		return m.fewest() + settled
	}
	return m.fewest()
}

func (m arima) Forecast(past []float64, horizon int) ([]float64, error) {
	if err := checkHorizon(horizon); err != nil {
		return nil, err
	}
	values, err := recent(past, max(m.fewest(), min(len(past), m.Needs())))
	if err != nil {
		return nil, err
	}
	for i, v := range values {
		values[i] = m.Scale.to(v)
	}
	ends := make([]float64, m.D) // the last value of each order of differences, to sum them up again
	w := values
	for d := range m.D {
		ends[d] = w[len(w)-1]
		w = differenced(w, 1)
	}
	errs := m.errors(w)
	next := make([]float64, horizon)
	for h := range next {
		v := m.next(w, errs)
		w, errs = append(w, v), append(errs, 0)
		for d := m.D - 1; d >= 0; d-- {
			v += ends[d]
			ends[d] = v
		}
		next[h] = m.Scale.from(v)
		if !finite(next[h]) {
			return nil, fmt.Errorf("the forecast grows beyond all bounds after %d steps", h)
		}
	}
	return next, nil
}

// differenced returns the differences of the order d.
func differenced(values []float64, d int) []float64 {
	for range d {
		next := make([]float64, len(values)-1)
		for i := range next {
			next[i] = values[i+1] - values[i]
		}
		values = next
	}
	return values
}

func sumOfSquares(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v * v
	}
	if !finite(sum) {
		return math.Inf(1)
	}
	return sum
}
