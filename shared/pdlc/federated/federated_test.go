package federated_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/forecast"
	"github.com/littoral-project/littoral/shared/pdlc/federated"
)

// series is a wave of a period and scale with noise.
func series(seed uint64, scale, offset float64) []float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]float64, 600)
	for i := range out {
		out[i] = offset + scale*(math.Sin(float64(i)/5+float64(seed))+0.05*r.NormFloat64())
	}
	return out
}

var plan = federated.Plan{Shape: federated.Shape{Lags: 12, Horizon: 4}, Clip: 5, Epochs: 3}

// rounds trains with participants, of which some may change what they send.
func rounds(t *testing.T, p federated.Plan, n int, data [][]float64, spoil func(participant int, u *federated.Update)) (w []float64, refused map[string]int) {
	t.Helper()
	w, refused = make([]float64, p.Weights()), map[string]int{}
	for round := range n {
		var updates []federated.Update
		for k, values := range data {
			r := rand.New(rand.NewPCG(uint64(round), uint64(k)))
			change, windows, err := federated.Train(t.Context(), p, w, values, r)
			require.NoError(t, err)
			u := federated.Update{Participant: fmt.Sprint("p", k), Change: change, Windows: windows}
			if spoil != nil {
				spoil(k, &u)
			}
			updates = append(updates, u)
		}
		next, out := federated.Aggregate(p, w, updates)
		for _, r := range out {
			refused[r.Participant]++
		}
		w = next
	}
	return w, refused
}

// errorOf is the mean absolute error on a series that nobody has trained on, as a share of that of the last value.
func errorOf(t *testing.T, p federated.Plan, w []float64) float64 {
	t.Helper()
	held := series(99, 7, 1000)
	e, err := forecast.Evaluate(federated.Model{Shape: p.Shape, W: w}, held, 100, len(held), p.Horizon, forecast.Interval{})
	require.NoError(t, err)
	last, err := forecast.LastValue{}.Train(t.Context(), forecast.Series{}, forecast.Options{})
	require.NoError(t, err)
	naive, err := forecast.Evaluate(last, held, 100, len(held), p.Horizon, forecast.Interval{})
	require.NoError(t, err)
	return e.MAE / naive.MAE
}

func TestFederatedTraining(t *testing.T) {
	t.Parallel()
	data := [][]float64{series(1, 1, 0), series(2, 100, -50), series(3, 0.01, 3), series(4, 1e6, 1e7)}
	w, refused := rounds(t, plan, 10, data, nil)
	require.Empty(t, refused)
	good := errorOf(t, plan, w)
	require.Less(t, good, 0.6, "on another scale, better than the last value")

	// Liars: one sends the opposite as long as it may be, one nonsense, and one too much.
	w, refused = rounds(t, plan, 10, append(data, series(5, 1, 0), series(6, 1, 0), series(7, 1, 0)), func(k int, u *federated.Update) {
		switch k {
		case 4:
			for i := range u.Change {
				u.Change[i] = -5 / math.Sqrt(float64(len(u.Change)))
			}
		case 5:
			u.Change[3] = math.NaN()
		case 6:
			for i := range u.Change {
				u.Change[i] *= 1e6
			}
		}
	})
	require.Equal(t, 10, refused["p5"])
	require.Equal(t, 10, refused["p6"])
	require.Equal(t, 10, refused["p4"])
	require.Len(t, refused, 3, "the honest ones count")
	require.Less(t, errorOf(t, plan, w), good+0.15)

	noisy := plan
	noisy.Epsilon = 100
	w, _ = rounds(t, noisy, 10, data, nil)
	require.Greater(t, errorOf(t, noisy, w), good, "noise costs")
}

// TestNoSampleIsTold: nothing of what is sent is a value of the series, at whatever scale.
func TestNoSampleIsTold(t *testing.T) {
	t.Parallel()
	values := series(3, 1234.5678, 98765.4321)
	change, windows, err := federated.Train(t.Context(), plan, make([]float64, plan.Weights()), values, rand.New(rand.NewPCG(1, 1)))
	require.NoError(t, err)
	text, err := json.Marshal(federated.Update{Participant: "a", Change: change, Windows: windows})
	require.NoError(t, err)
	for _, v := range values {
		require.NotContains(t, string(text), strings.TrimSuffix(fmt.Sprintf("%.6g", v), "0"))
	}
	require.LessOrEqual(t, windows, len(values))
}

func TestPlansAndDataAreChecked(t *testing.T) {
	t.Parallel()
	for _, p := range []federated.Plan{
		{},
		{Shape: federated.Shape{Lags: 1, Horizon: 1}, Clip: 1, Epochs: 1},
		{Shape: plan.Shape, Epochs: 1},
		{Shape: plan.Shape, Clip: 1},
		{Shape: plan.Shape, Clip: 1, Epochs: 1, Epsilon: 1e-9},
		{Shape: plan.Shape, Clip: math.NaN(), Epochs: 1},
	} {
		require.Error(t, p.Check(), "%+v", p)
	}
	require.NoError(t, plan.Check())
	_, _, err := federated.Train(t.Context(), plan, make([]float64, plan.Weights()), make([]float64, 10), rand.New(rand.NewPCG(1, 1)))
	require.ErrorIs(t, err, federated.ErrShort)
	gaps := make([]float64, 100)
	for i := range gaps {
		gaps[i] = math.NaN()
	}
	_, _, err = federated.Train(t.Context(), plan, make([]float64, plan.Weights()), gaps, rand.New(rand.NewPCG(1, 1)))
	require.ErrorIs(t, err, federated.ErrShort)
}
