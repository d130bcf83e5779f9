// Package federated trains one model on the series of several clusters without a sample leaving its cluster. In each round the
// participants get the weights, train on their own series, and send back how the weights should change (McMahan et al. 2017); the
// coordinator averages the changes.
//
// The model is linear in the lags of a series, for each step ahead, on values scaled by the mean and the spread of the lags
// themselves: so nothing of a participant's scale has to be told, and one set of weights serves all.
package federated

import (
	"cmp"
	"context"
	cryptorand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// ErrShort says that a series has too few values.
var ErrShort = errors.New("the series is too short")

// Shape of the model.
type Shape struct {
	Lags    int `json:"lags"`
	Horizon int `json:"horizon"`
}

// Weights are how many a model of the shape has: of each lag and a constant, for each step ahead.
func (s Shape) Weights() int { return (s.Lags + 1) * s.Horizon }

// Model forecasts with weights of a shape. It is a forecast.Model.
type Model struct {
	Shape
	W []float64 `json:"w"`
}

// Needs is of forecast.Model.
func (m Model) Needs() int { return m.Lags }

// Forecast is of forecast.Model, for at most as many steps as it was trained for.
func (m Model) Forecast(past []float64, horizon int) ([]float64, error) {
	if horizon < 1 || horizon > m.Horizon || len(m.W) != m.Weights() {
		return nil, fmt.Errorf("the model forecasts 1 to %d steps, not %d", m.Horizon, horizon)
	}
	if len(past) < m.Lags {
		return nil, fmt.Errorf("%w: %d values, %d are needed", ErrShort, len(past), m.Lags)
	}
	lags := slices.Clone(past[len(past)-m.Lags:])
	if !closeGaps(lags) {
		return nil, fmt.Errorf("%w: there are only gaps", ErrShort)
	}
	x, last, spread := scaled(lags)
	next := make([]float64, horizon)
	for h := range next {
		next[h] = last + spread*m.at(x, h)
	}
	return next, nil
}

func (m Model) at(x []float64, h int) float64 {
	w := m.W[h*(m.Lags+1):]
	sum := w[m.Lags]
	for i, v := range x {
		sum += w[i] * v
	}
	return sum
}

// closeGaps gives each gap the value before it, or the first there is.
func closeGaps(values []float64) bool {
	first := slices.IndexFunc(values, finite)
	if first < 0 {
		return false
	}
	last := values[first]
	for i, v := range values {
		if finite(v) {
			last = v
		}
		values[i] = last
	}
	return true
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// scaled are the lags as differences to the last one, in units of their spread.
func scaled(lags []float64) (x []float64, last, spread float64) {
	last = lags[len(lags)-1]
	mean := 0.0
	for _, v := range lags {
		mean += v / float64(len(lags))
	}
	for _, v := range lags {
		spread += (v - mean) * (v - mean) / float64(len(lags))
	}
	if spread = math.Sqrt(spread); spread < 1e-9*max(1, math.Abs(mean)) {
		spread = 1e-9 * max(1, math.Abs(mean))
	}
	x = make([]float64, len(lags))
	for i, v := range lags {
		x[i] = max(-5, min(5, (v-last)/spread))
	}
	return x, last, spread
}

// Plan is what a coordinator asks of participants.
type Plan struct {
	Shape
	Clip    float64 `json:"clip"`    // the greatest length of a change; longer ones are shortened
	Epsilon float64 `json:"epsilon"` // of the noise for each round (with delta 1e-5); 0 is none
	Epochs  int     `json:"epochs"`  // that each participant trains in a round
}

// Check says what is wrong with the plan.
func (p Plan) Check() error {
	switch {
	case p.Lags < 2 || p.Lags > 256 || p.Horizon < 1 || p.Horizon > 64:
		return errors.New("lags are 2 to 256, the horizon 1 to 64")
	case !(p.Clip > 0 && p.Clip <= 100):
		return errors.New("clip is above 0, to 100")
	case !(p.Epsilon == 0 || p.Epsilon >= 0.01 && p.Epsilon <= 100):
		return errors.New("epsilon is 0 or 0.01 to 100")
	case p.Epochs < 1 || p.Epochs > 100:
		return errors.New("epochs are 1 to 100")
	}
	return nil
}

// delta is the probability with which the promise of epsilon may fail.
const delta = 1e-5

// Noise is the standard deviation of what is added to each weight's change: that of the Gaussian mechanism for one round (Dwork and
// Roth 2014, theorem A.1, which holds for epsilon up to 1; above, it is no proof and said to be none).
func (p Plan) Noise() float64 {
	if p.Epsilon == 0 {
		return 0
	}
	return p.Clip * math.Sqrt(2*math.Log(1.25/delta)) / p.Epsilon
}

// Random is what Train draws from outside of tests: nobody can guess its seed.
func Random() (*rand.Rand, error) {
	var seed [16]byte
	if _, err := cryptorand.Read(seed[:]); err != nil {
		return nil, err
	}
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:]))), nil
}

const rate = 0.02 // of the gradient

// Train returns how a participant wants the weights changed by its own series, shortened and with noise, and on how many windows it
// has trained. The noise is drawn from r, which must not be guessed by others.
func Train(ctx context.Context, p Plan, w []float64, values []float64, r *rand.Rand) (change []float64, windows int, err error) {
	if len(w) != p.Weights() {
		return nil, 0, fmt.Errorf("%d weights for a model of %d", len(w), p.Weights())
	}
	m := Model{p.Shape, slices.Clone(w)}
	n := len(values) - p.Lags - p.Horizon + 1
	if n < 8 {
		return nil, 0, fmt.Errorf("%w: %d values, %d are needed", ErrShort, len(values), p.Lags+p.Horizon+7)
	}
	for range p.Epochs {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		windows = 0
		for _, at := range r.Perm(n) {
			if m.step(values, at) {
				windows++
			}
		}
	}
	if windows == 0 {
		return nil, 0, fmt.Errorf("%w: there are only gaps", ErrShort)
	}
	change = make([]float64, len(w))
	for i := range w {
		change[i] = m.W[i] - w[i]
	}
	shorten(change, p.Clip)
	for i := range change {
		change[i] += p.Noise() * r.NormFloat64()
	}
	return change, windows, nil
}

// step goes against the gradient of one window; false where it is a gap.
func (m *Model) step(values []float64, at int) bool {
	lags := slices.Clone(values[at : at+m.Lags])
	if !finite(lags[len(lags)-1]) || !closeGaps(lags) {
		return false
	}
	x, last, spread := scaled(lags)
	length := 1.0
	for _, v := range x {
		length += v * v
	}
	seen := false
	for h := range m.Horizon {
		y := values[at+m.Lags+h]
		if !finite(y) {
			continue
		}
		seen = true
		miss := m.at(x, h) - max(-5, min(5, (y-last)/spread))
		w := m.W[h*(m.Lags+1):]
		for i, v := range x {
			w[i] -= rate * miss * v / length
		}
		w[m.Lags] -= rate * miss / length
	}
	return seen
}

// shorten cuts a change to a length.
func shorten(change []float64, most float64) {
	if l := length(change); l > most {
		for i := range change {
			change[i] *= most / l
		}
	}
}

func length(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}

// Update is what a participant sent.
type Update struct {
	Participant string    `json:"participant"`
	Change      []float64 `json:"change"`
	Windows     int       `json:"windows"`
}

// Refused is an update that does not count, and why.
type Refused struct {
	Participant string `json:"participant"`
	Why         string `json:"why"`
}

// Aggregate changes the weights by the updates. One of a wrong size, with values that are no numbers, longer than it may be (that is
// the noise in mind), or far from the median of the others is refused: a liar is heard at most as far as the others go. Each
// participant counts the same, so that nobody counts more by saying that it has more.
func Aggregate(p Plan, w []float64, updates []Update) (next []float64, refused []Refused) {
	var good []Update
	longest := p.Clip + p.Noise()*math.Sqrt(float64(len(w)))*2
	for _, u := range updates {
		why := ""
		switch {
		case len(u.Change) != len(w):
			why = fmt.Sprintf("has %d weights, not %d", len(u.Change), len(w))
		case slices.ContainsFunc(u.Change, func(v float64) bool { return !finite(v) }):
			why = "has weights that are no numbers"
		case length(u.Change) > longest*1.01:
			why = fmt.Sprintf("is %.3g long, at most %.3g is possible", length(u.Change), longest)
		}
		if why != "" {
			refused = append(refused, Refused{u.Participant, why})
			continue
		}
		good = append(good, u)
	}
	good, far := outliers(good)
	refused = append(refused, far...)
	next = slices.Clone(w)
	for _, u := range good {
		for i := range next {
			next[i] += u.Change[i] / float64(len(good))
		}
	}
	return next, refused
}

// tooFar is how many times as far as the median distance an update may be from the median of all.
const tooFar = 3

// outliers leaves those out that are far from the median. Of fewer than three nobody can say who lies.
func outliers(all []Update) (near []Update, far []Refused) {
	if len(all) < 3 {
		return all, nil
	}
	center := make([]float64, len(all[0].Change))
	column := make([]float64, len(all))
	for i := range center {
		for k := range all {
			column[k] = all[k].Change[i]
		}
		center[i] = median(column)
	}
	away := make([]float64, len(all))
	for k := range all {
		d := make([]float64, len(center))
		for i := range center {
			d[i] = all[k].Change[i] - center[i]
		}
		away[k] = length(d)
	}
	// Nobody is far who is as near as the median update is long: where all agree, the distances are nothing but chance.
	bound := max(tooFar*median(slices.Clone(away)), length(center)/2, 1e-12)
	for k := range all {
		if away[k] > bound {
			far = append(far, Refused{all[k].Participant, fmt.Sprintf("is %.3g away from the median of all, at most %.3g counts", away[k], bound)})
			continue
		}
		near = append(near, all[k])
	}
	return near, far
}

func median(values []float64) float64 {
	slices.SortFunc(values, cmp.Compare[float64])
	k := len(values) / 2
	if len(values)%2 == 1 {
		return values[k]
	}
	return (values[k-1] + values[k]) / 2
}
