package solver_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/placement/solver"
)

// Candidates come by falling points and ties by node, however few are requested first, and for any distribution of
// points.
func TestCandidates_inOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	ways := map[string]func() float64{
		"even":    func() float64 { return 100 * r.Float64() },
		"whole":   func() float64 { return float64(r.IntN(4)) },
		"equal":   func() float64 { return 7 },
		"zero":    func() float64 { return 0 },
		"steep":   func() float64 { return math.Exp(40*r.Float64() - 20) },
		"nearly":  func() float64 { return 50 + 1e-13*r.Float64() },
		"tiniest": func() float64 { return float64(r.IntN(3)) * math.SmallestNonzeroFloat64 },
		"few":     func() float64 { return float64(max(-1, r.IntN(40)-38)) },
	}
	for name, way := range ways {
		for _, nodes := range []int{0, 1, 1024, 1025, 5_000, 20_000} {
			points := make([]float64, nodes)
			var want []int32
			for n := range points {
				if points[n] = way(); r.IntN(4) == 0 {
					points[n] = -1
				}
				if points[n] >= 0 {
					want = append(want, int32(n))
				}
			}
			slices.SortStableFunc(want, func(a, b int32) int { return cmp.Compare(points[b], points[a]) })
			for _, k := range []int{0, 1, 300, 2_000, nodes} {
				first, all := solver.Candidates(points, k)
				require.True(t, slices.Equal(want[:min(k, len(want))], first), "%s, the first %d of %d", name, k, nodes)
				require.True(t, slices.Equal(want, all), "%s, all of %d", name, nodes)
			}
		}
	}
}
