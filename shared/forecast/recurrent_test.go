package forecast

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGradientsAreThoseOfTheError: against differences of the error itself.
func TestGradientsAreThoseOfTheError(t *testing.T) {
	t.Parallel()
	for _, gates := range []int{lstmGates, gruGates} {
		t.Run(fmt.Sprint(gates, " gates"), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			m := &network{Lags: 5, Ahead: 3, Gates: gates, Scale: scale{0, 1}}
			for range cellWeights(gates, 1) {
				m.Weights = append(m.Weights, r.NormFloat64()/4)
			}
			for range m.Ahead * (stateSize + 1) {
				m.Head = append(m.Head, r.NormFloat64()/4)
			}
			lags, want := []float64{1, -0.5, 0.3, 2, 0.7}, []float64{0.5, -1, 2}
			p := newPass(m)
			p.learn()
			miss := func() float64 {
				total := 0.0
				for h, v := range p.forward(lags) {
					total += (v - want[h]) * (v - want[h]) / 2
				}
				return total
			}
			miss()
			p.backward(want)
			for _, part := range []struct{ weights, gradient []float64 }{{m.Weights, p.way.gradient}, {m.Head, p.head}} {
				for i := range part.weights {
					const little = 1e-5
					was := part.weights[i]
					part.weights[i] = was + little
					above := miss()
					part.weights[i] = was - little
					below := miss()
					part.weights[i] = was
					require.InDelta(t, (above-below)/(2*little), part.gradient[i], 1e-6, "weight %d", i)
				}
			}
		})
	}
}

// TestNetworksLearnAWave: their errors are less than half of what the naive kind has on what needs more than one lag.
func TestNetworksLearnAWave(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	s := Series{Step: 3600e9}
	for i := range 1500 {
		s.Values = append(s.Values, 10*math.Sin(2*math.Pi*float64(i)/24)+5*math.Sin(2*math.Pi*float64(i)/7)+0.3*r.NormFloat64())
	}
	list, err := Compare(t.Context(), s, Options{Lags: 24, Horizon: 6, Seed: 1}, 0.9, LastValue{}, LSTM{}, GRU{})
	require.NoError(t, err)
	for _, v := range list[1:] {
		require.NoError(t, v.Err)
		require.Less(t, v.Test.MAE, list[0].Test.MAE/2, v.Kind)
	}
}
