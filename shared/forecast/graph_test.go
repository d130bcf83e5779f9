package forecast

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGradientsOverAGraphAreThoseOfTheError(t *testing.T) {
	t.Parallel()
	for _, gates := range []int{lstmGates, gruGates} {
		t.Run(fmt.Sprint(gates, " gates"), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			m := &graphNetwork{Lags: 4, Ahead: 3, Gates: gates, Nodes: 3, Metrics: 2, Links: [][2]int{{0, 1}}}
			for i, size := range m.sizes() {
				for range size {
					*m.parts()[i] = append(*m.parts()[i], r.NormFloat64()/3)
				}
			}
			lags, want := make([][]float64, 6), make([][]float64, 6)
			for i := range lags {
				m.Scales = append(m.Scales, scale{0, 1 + r.Float64()})
				for range m.Lags {
					lags[i] = append(lags[i], r.NormFloat64())
				}
				for range m.Ahead {
					want[i] = append(want[i], r.NormFloat64())
				}
			}
			want[3][1] = math.NaN() // a gap counts not
			p := newGraphPass(m)
			p.learn()
			miss := func() (total float64) {
				p.forward(lags)
				for i := range want {
					for h, v := range p.change(i) {
						if finite(want[i][h]) {
							total += (v - want[i][h]) * (v - want[i][h]) / 2
						}
					}
				}
				return total
			}
			miss()
			p.backward(want)
			for part, weights := range m.parts() {
				for i := range *weights {
					const little = 1e-5
					was := (*weights)[i]
					(*weights)[i] = was + little
					above := miss()
					(*weights)[i] = was - little
					below := miss()
					(*weights)[i] = was
					require.InDelta(t, (above-below)/(2*little), p.gradients[part][i], 1e-6, "part %d, weight %d", part, i)
				}
			}
		})
	}
}

// follows is a graph in which two nodes do what the one that they are linked to did a quarter of an hour before: they cannot know it
// from their own past.
func follows(n int) Graph {
	r := rand.New(rand.NewPCG(5, 6))
	g := Graph{
		Step: 5 * time.Minute, Nodes: []string{"hub", "a", "b"}, Metrics: []string{"cpu", "memory"},
		Links: [][2]int{{0, 1}, {2, 0}}, Values: make([][]float64, 6),
	}
	lead := make([]float64, n+3)
	for i := 1; i < len(lead); i++ {
		lead[i] = 0.8*lead[i-1] + r.NormFloat64()
	}
	for i := range n {
		for node := range g.Nodes {
			v := lead[i]
			if node == 0 {
				v = lead[i+3]
			}
			g.Values[2*node] = append(g.Values[2*node], 40+5*v+0.2*r.NormFloat64())
			g.Values[2*node+1] = append(g.Values[2*node+1], 4e9+1e8*v+1e6*r.NormFloat64())
		}
	}
	return g
}

// TestGraphModelsLearnFromNeighbours: what reaches the neighbours later is foreseen better than from each node's own past.
func TestGraphModelsLearnFromNeighbours(t *testing.T) {
	t.Parallel()
	g := follows(400)
	g.Values[1][330] = math.NaN()
	options := Options{Lags: 4, Horizon: 3, Seed: 1}
	list, err := CompareGraph(t.Context(), g, options, 0.95, Each{LastValue{}}, Each{Ridge{}}, STGNN{}, A3TGCN{})
	require.NoError(t, err)
	for _, v := range list {
		require.NoError(t, v.Err, v.Kind)
		t.Logf("%-12s MAE %.3f of a standard deviation, cpu %.3f, coverage %.3f", v.Kind, v.Test.MAE, v.ByMetric[0].MAE, v.Test.Coverage)
	}
	for _, v := range list[2:] {
		require.Less(t, v.Test.MAE, 0.9*list[1].Test.MAE, v.Kind)
		require.InDelta(t, 0.95, v.Test.Coverage, 0.05, v.Kind)
		data, err := json.Marshal(v.Graph)
		require.NoError(t, err)
		kind, err := GraphKindOf(v.Kind)
		require.NoError(t, err)
		back, err := kind.Decode(data)
		require.NoError(t, err)
		want, err := v.Graph.Forecast(g.Values, 20)
		require.NoError(t, err)
		got, err := back.Forecast(g.Values, 20)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Len(t, got, 6)
		require.Len(t, got[0], 20, "as far as asked")
		_, err = back.Forecast(g.Values[:2], 1)
		require.Error(t, err)
		_, err = back.Forecast(until(g.Values, 3), 1)
		require.ErrorIs(t, err, ErrShort)
		_, err = Each{Ridge{}}.Decode(data)
		require.NoError(t, err, "of no models")
		_, err = map[string]GraphKind{"stgnn": A3TGCN{}, "a3t-gcn": STGNN{}}[v.Kind].Decode(data)
		require.Error(t, err)
	}
}

// TestAGraphTrainsTheSameEachTime: the same seed gives the same bits, another seed others, and who no longer waits is heard.
func TestAGraphTrainsTheSameEachTime(t *testing.T) {
	t.Parallel()
	g := follows(40)
	train := func(seed uint64) string {
		m, err := A3TGCN{}.Train(t.Context(), g, Options{Lags: 2, Horizon: 1, Seed: seed})
		require.NoError(t, err)
		data, err := json.Marshal(m)
		require.NoError(t, err)
		return string(data)
	}
	first := train(1)
	require.Equal(t, first, train(1))
	require.NotEqual(t, first, train(2))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := STGNN{}.Train(gone, g, Options{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = STGNN{}.Train(t.Context(), g.until(20), Options{})
	require.ErrorIs(t, err, ErrShort)
	g.Links = append(g.Links, [2]int{0, 9})
	_, err = STGNN{}.Train(t.Context(), g, Options{})
	require.ErrorContains(t, err, "no link between nodes 0 and 9")
}

// BenchmarkGraphForecast is of as many nodes as a graph may have.
func BenchmarkGraphForecast(b *testing.B) {
	for _, gates := range []int{lstmGates, gruGates} {
		m := &graphNetwork{Lags: 12, Ahead: 12, Gates: gates, Nodes: MaxNodes, Metrics: 2}
		for i, size := range m.sizes() {
			*m.parts()[i] = make([]float64, size)
		}
		past := make([][]float64, 2*MaxNodes)
		for i := range past {
			m.Scales = append(m.Scales, scale{0, 1})
			past[i] = make([]float64, 12)
		}
		b.Run(fmt.Sprint(gates, " gates"), func(b *testing.B) {
			for b.Loop() {
				if _, err := m.Forecast(past, 12); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
