package metricsexport

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/forecast"
	"github.com/littoral-project/littoral/shared/objects"
	"github.com/littoral-project/littoral/shared/objects/folder"
	"github.com/littoral-project/littoral/shared/objects/s3"
	"github.com/littoral-project/littoral/shared/objects/s3/s3test"
)

// BenchmarkLoad reads a model of each kind of one series from a folder and from a bucket of a real server, which is skipped where none is
// built: over a connection that is kept, and over one of its own, as a function that was at zero does.
func BenchmarkLoad(b *testing.B) {
	s := forecast.Series{Step: 5 * time.Minute, Values: make([]float64, 4032)}
	for i := range s.Values {
		s.Values[i] = 50 + 20*math.Sin(2*math.Pi*float64(i)/41) + 3*math.Sin(float64(i*i))
	}
	learnt := map[string]any{}
	for _, name := range []string{"ridge", "trees", "lstm", "gru"} {
		kind, err := storedKind(name)
		require.NoError(b, err)
		learnt[name], err = kind.Train(b.Context(), s, forecast.Options{Seed: 1}.WithDefaults())
		require.NoError(b, err)
	}
	bucket := func(client *http.Client) func(*testing.B) objects.Store {
		return func(b *testing.B) objects.Store {
			b.Helper()
			return s3.New(s3test.Start(b).Bucket(b), client)
		}
	}
	for _, store := range []struct {
		where string
		open  func(*testing.B) objects.Store
	}{
		{"folder", func(b *testing.B) objects.Store { b.Helper(); return folder.New(b.TempDir()) }},
		{"bucket", bucket(http.DefaultClient)},
		{"bucket, new connection", bucket(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}})},
	} {
		b.Run(store.where, func(b *testing.B) {
			models := NewModels(store.open(b))
			for name, m := range learnt {
				b.Run(name, func(b *testing.B) {
					require.NoError(b, models.save(b.Context(), name, 1, m))
					about := &Model{Name: name, Version: 1, Kind: name}
					data, err := models.learnt(b.Context(), about)
					require.NoError(b, err)
					for b.Loop() {
						_, err := models.Load(b.Context(), about)
						require.NoError(b, err)
					}
					b.ReportMetric(float64(len(data)), "bytes")
				})
			}
		})
	}
}
