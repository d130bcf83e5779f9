package forecast_test

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/forecast"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const hourly = time.Hour // a day of 24 steps keeps the tests small

// daily is a wave with the period of a day, a trend and noise.
func daily(n int, noise float64) forecast.Series {
	r := rand.New(rand.NewPCG(3, 4))
	s := forecast.Series{Start: start, Step: hourly}
	for i := range n {
		wave := 10 * math.Sin(2*math.Pi*float64(i)/24)
		s.Values = append(s.Values, 50+wave+0.01*float64(i)+noise*r.NormFloat64())
	}
	return s
}

// autoregressive is a series that is drawn back to 10.
func autoregressive(n int) forecast.Series {
	r := rand.New(rand.NewPCG(5, 6))
	s := forecast.Series{Start: start, Step: hourly}
	v := 0.0
	for range n {
		v = 0.6*v + r.NormFloat64()
		s.Values = append(s.Values, 10+v)
	}
	return s
}

// TestKinds is the conformance suite: what holds for every kind.
func TestKinds(t *testing.T) {
	t.Parallel()
	o := forecast.Options{Lags: 12, Horizon: 6, Seed: 7}
	for _, kind := range append(forecast.Kinds, forecast.ARIMA{P: 1, D: 0, Q: 1}) {
		t.Run(kind.Name(), func(t *testing.T) {
			t.Parallel()
			train := func(t *testing.T, s forecast.Series) forecast.Model {
				m, err := kind.Train(t.Context(), s, o)
				require.NoError(t, err)
				return m
			}
			forecastOf := func(t *testing.T, m forecast.Model, past []float64, horizon int) []float64 {
				next, err := m.Forecast(past, horizon)
				require.NoError(t, err)
				require.Len(t, next, horizon)
				for _, v := range next {
					require.False(t, math.IsNaN(v) || math.IsInf(v, 0), "%v", next)
				}
				return next
			}
			s := daily(24*14, 1)

			t.Run("the same seed gives the same bits, also after it was stored", func(t *testing.T) {
				t.Parallel()
				first := train(t, s)
				data, err := json.Marshal(first)
				require.NoError(t, err)
				again, err := json.Marshal(train(t, s))
				require.NoError(t, err)
				require.Equal(t, string(data), string(again))
				read, err := kind.Decode(data)
				require.NoError(t, err)
				require.Equal(t, forecastOf(t, first, s.Values, 30), forecastOf(t, read, s.Values, 30))
			})
			t.Run("a constant series stays constant", func(t *testing.T) {
				t.Parallel()
				flat := forecast.Series{Start: start, Step: hourly, Values: make([]float64, 24*10)}
				for i := range flat.Values {
					flat.Values[i] = 42
				}
				for _, v := range forecastOf(t, train(t, flat), flat.Values, 12) {
					require.InDelta(t, 42, v, 0.01)
				}
			})
			t.Run("gaps are closed", func(t *testing.T) {
				t.Parallel()
				holes := daily(24*14, 1)
				for i := range holes.Values {
					if i%17 == 0 {
						holes.Values[i] = math.NaN()
					}
				}
				holes.Values[0], holes.Values[len(holes.Values)-1] = math.NaN(), math.NaN()
				forecastOf(t, train(t, holes), holes.Values, 6)
			})
			t.Run("only gaps are too short", func(t *testing.T) {
				t.Parallel()
				none := make([]float64, 24*14)
				for i := range none {
					none[i] = math.NaN()
				}
				_, err := train(t, s).Forecast(none, 6)
				require.ErrorIs(t, err, forecast.ErrShort)
			})
			t.Run("24 points are enough or refused", func(t *testing.T) {
				t.Parallel()
				few := daily(24, 1)
				m, err := kind.Train(t.Context(), few, o)
				if err != nil {
					require.ErrorIs(t, err, forecast.ErrShort)
					return
				}
				forecastOf(t, m, few.Values, 6)
			})
			t.Run("no value is refused", func(t *testing.T) {
				t.Parallel()
				_, err := train(t, s).Forecast(nil, 1)
				require.ErrorIs(t, err, forecast.ErrShort)
				_, err = train(t, s).Forecast(s.Values, 0)
				require.ErrorContains(t, err, "horizon")
			})
			t.Run("a hundred thousand points", func(t *testing.T) {
				t.Parallel()
				long := daily(100_000, 1)
				forecastOf(t, train(t, long), long.Values, 6)
			})
			t.Run("large and small units", func(t *testing.T) {
				t.Parallel()
				plain := forecastOf(t, train(t, s), s.Values, 6)
				for _, unit := range []float64{1e-9, 1e9} {
					scaled := forecast.Series{Start: s.Start, Step: s.Step}
					for _, v := range s.Values {
						scaled.Values = append(scaled.Values, v*unit)
					}
					for h, v := range forecastOf(t, train(t, scaled), scaled.Values, 6) {
						require.InEpsilon(t, plain[h], v/unit, 0.02, "unit %g, step %d", unit, h)
					}
				}
			})
			t.Run("a training can be cancelled", func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := kind.Train(ctx, daily(100_000, 1), o); err != nil { // the naive ones and a plain regression are done at once
					require.ErrorIs(t, err, context.Canceled)
				}
			})
			t.Run("a model that was cut off is refused", func(t *testing.T) {
				t.Parallel()
				data, err := json.Marshal(train(t, s))
				require.NoError(t, err)
				if len(data) > 2 { // else it has nothing to lose
					_, err = kind.Decode(data[:len(data)-1])
					require.Error(t, err)
				}
			})
		})
	}
}

func TestCompare_findsWhatIsBetterThanTheNaiveKinds(t *testing.T) {
	t.Parallel()
	list, err := forecast.Compare(t.Context(), autoregressive(3000), forecast.Options{}, 0.9, forecast.Kinds...)
	require.NoError(t, err)
	mae := map[string]float64{}
	for _, v := range list {
		require.NoError(t, v.Err, v.Kind)
		mae[v.Kind] = v.Test.MAE
		require.InDelta(t, 0.9, v.Test.Coverage, 0.05, "coverage of %s", v.Kind)
	}
	require.Less(t, mae["ridge"], 0.95*mae["last-value"])
	require.Less(t, mae["trees"], mae["last-value"])
	require.False(t, forecast.IsNaive(forecast.Best(list).Kind))
}

func TestCompare_choosesANaiveKindWhereNothingBeatsIt(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 9))
	walk := forecast.Series{Start: start, Step: hourly}
	v := 0.0
	for range 3000 {
		v += r.NormFloat64()
		walk.Values = append(walk.Values, v)
	}
	list, err := forecast.Compare(t.Context(), walk, forecast.Options{}, 0.9, forecast.LastValue{}, forecast.Yesterday{}, forecast.Trees{})
	require.NoError(t, err)
	require.Equal(t, "last-value", forecast.Best(list).Kind)
}

func TestBest_isNaiveWhenTheErrorsAreEqual(t *testing.T) {
	t.Parallel()
	best := forecast.Best([]forecast.Verdict{
		{Kind: "ridge", Test: forecast.Errors{MAE: 1}}, {Kind: "last-value", Test: forecast.Errors{MAE: 1}},
	})
	require.Equal(t, "last-value", best.Kind)
	require.Nil(t, forecast.Best([]forecast.Verdict{{Kind: "ridge", Err: forecast.ErrShort}}))
}

func TestCompare_saysWhyAKindHasNoModel(t *testing.T) {
	t.Parallel()
	list, err := forecast.Compare(t.Context(), daily(60, 1), forecast.Options{}, 0.9, forecast.LastValue{}, forecast.HoltWinters{})
	require.NoError(t, err)
	require.NoError(t, list[0].Err)
	require.ErrorIs(t, list[1].Err, forecast.ErrShort)
}

func TestHoltWinters_learnsTheDay(t *testing.T) {
	t.Parallel()
	s := daily(24*20, 0.5)
	list, err := forecast.Compare(t.Context(), s, forecast.Options{}, 0.9, forecast.LastValue{}, forecast.HoltWinters{})
	require.NoError(t, err)
	require.Less(t, list[1].Test.MAE, list[0].Test.MAE/4)
}

func TestARIMA_findsTheCoefficientsOfAnAutoregression(t *testing.T) {
	t.Parallel()
	s := autoregressive(20_000)
	m, err := forecast.ARIMA{P: 1, D: 0, Q: 0}.Train(t.Context(), s, forecast.Options{})
	require.NoError(t, err)
	next, err := m.Forecast([]float64{10, 14}, 2)
	require.NoError(t, err)
	require.InDelta(t, 10+0.6*4, next[0], 0.15)
	require.InDelta(t, 10+0.36*4, next[1], 0.15)
}

func TestInfluence_isGreatestForTheValueThatCounts(t *testing.T) {
	t.Parallel()
	m, err := forecast.LastValue{}.Train(t.Context(), daily(50, 1), forecast.Options{})
	require.NoError(t, err)
	influence, err := forecast.Influence(m, daily(50, 1).Values, 4, 3)
	require.NoError(t, err)
	require.Equal(t, []float64{0, 0, 0}, influence[:3])
	require.Positive(t, influence[3])
}

func TestRegular_putsPointsOntoSteps(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	s, err := forecast.Regular([]forecast.Point{{at(10), 3}, {at(0), 1}, {at(1), 2}, {at(11), math.NaN()}, {at(21), 7}}, 5*time.Minute)
	require.NoError(t, err)
	require.Equal(t, start, s.Start)
	require.Len(t, s.Values, 5)
	require.InDelta(t, 1.5, s.Values[0], 0)
	require.True(t, math.IsNaN(s.Values[1]))
	require.InDelta(t, 3, s.Values[2], 0)
	require.InDelta(t, 7, s.Values[4], 0)
	_, err = forecast.Regular(nil, time.Minute)
	require.Error(t, err)
	_, err = forecast.Regular([]forecast.Point{{start, 1}, {start.AddDate(100, 0, 0), 1}}, time.Second)
	require.ErrorContains(t, err, "at most")
	_, err = forecast.Regular([]forecast.Point{{start, 1}}, 0)
	require.Error(t, err)
}
