package profile_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/pdlc/profile"
)

func parsed(t testing.TB, text string) *profile.Formula {
	t.Helper()
	f, err := profile.Parse(text)
	require.NoError(t, err, text)
	return f
}

func builtin(t testing.TB, name string, printed bool) *profile.Formula {
	t.Helper()
	for _, p := range profile.Builtin(printed) {
		if p.Name == name {
			return parsed(t, p.Formula)
		}
	}
	require.Fail(t, name)
	return nil
}

func value(t testing.TB, s profile.Score) float64 {
	t.Helper()
	require.NotNil(t, s.Value, s.Why)
	return *s.Value
}

func TestFormulasAreChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "is expected",
		"energy":                        "the unit W",
		"ebw / energy":                  "bit/W/s",
		"energy + ebw":                  "W and bit/s cannot be added",
		"max(latency, degree)":          "they need one unit",
		"speed":                         `no metric "speed"`,
		"exec(cpu)":                     `no function "exec"`,
		"cpu cpu":                       "not expected",
		"(cpu":                          ") is missing",
		"clamp(cpu, 1)":                 "takes 3",
		"1e5":                           "not expected",
		"sqrt(energy)":                  "plain number",
		"if(energy, 1, 0)":              "plain number",
		strings.Repeat("(", 100):        "levels",
		strings.Repeat("1+", 400) + "1": "parts",
		strings.Repeat("1", 2000):       "characters",
	} {
		_, err := profile.Parse(text)
		require.ErrorContains(t, err, want, text)
	}
	for _, text := range []string{"energy / greatest(energy)", "-(2 * cpu - 1.5) / 3", "above(ebw, mean(ebw))", "share(latency * ebw)", "greatest(share(share(energy)))"} {
		parsed(t, text)
	}
}

func TestScores(t *testing.T) {
	t.Parallel()
	nodes := []profile.Values{
		{"energy": 100, "ebw": 1e9, "degree": 2, "node_failure": 0, "link_failure": 0},
		{"energy": 20, "ebw": 1e9, "degree": 2, "node_failure": 0.5, "link_failure": 0.5},
		{"energy": 20, "ebw": 0, "degree": 0, "node_failure": 0, "link_failure": 0},
		{"ebw": 1e9, "degree": 4, "node_failure": math.NaN(), "link_failure": 0},
	}
	green := builtin(t, "greenness", false).Score(nodes)
	require.Zero(t, value(t, green[0]), "the one that draws most")
	require.InDelta(t, 0.8, value(t, green[1]), 1e-9)
	require.Zero(t, value(t, green[2]), "nothing is left of its bandwidth")
	require.Equal(t, "energy is not known", green[3].Why)
	resilient := builtin(t, "resilience", false).Score(nodes)
	require.InDelta(t, 1, value(t, resilient[0]), 1e-9)
	require.InDelta(t, 1/1.5, value(t, resilient[1]), 1e-9)
	require.Zero(t, value(t, resilient[2]))
	require.Equal(t, "node_failure is not known", resilient[3].Why)
	require.Equal(t, []float64{0, 1, 0, 0}, profile.Share(green))

	printed := builtin(t, "resilience", true).Score(nodes)
	require.Less(t, value(t, printed[0]), value(t, printed[1]), "as printed it grows with failures")
	require.Equal(t, "it is divided by zero", printed[2].Why)
}

// TestResilience_fallsWithFailuresAndRisesWithDegree, for whatever values there may be.
func TestResilience_fallsWithFailuresAndRisesWithDegree(t *testing.T) {
	t.Parallel()
	f := builtin(t, "resilience", false)
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := profile.Values{"degree": float64(1 + r.IntN(20)), "node_failure": r.Float64(), "link_failure": 5 * r.Float64()}
		with := func(key string, more float64) profile.Values {
			o := profile.Values{}
			for k, v := range n {
				o[k] = v
			}
			o[key] += more
			return o
		}
		s := f.Score([]profile.Values{n, with("node_failure", 0.1), with("link_failure", 0.1), with("degree", 1)})
		require.Less(t, value(t, s[1]), value(t, s[0]))
		require.Less(t, value(t, s[2]), value(t, s[0]))
		require.GreaterOrEqual(t, value(t, s[3]), value(t, s[0]))
		require.True(t, value(t, s[0]) > 0 && value(t, s[0]) <= 1)
	}
}

// TestUnitsDoNotChangeTheOrder: milliwatts and kilobits instead of watts and bits give the same scores.
func TestUnitsDoNotChangeTheOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	factors := map[string]float64{"energy": 1000, "ebw": 1e-3, "latency": 1000, "memory": 1.0 / (1 << 20), "cores": 1000, "freshness": 1000}
	formulas := []*profile.Formula{parsed(t, "share(ebw) / (1 + share(latency)) + energy / mean(energy)"), parsed(t, "clamp(share(memory), 0.1, 1) * above(cores, mean(cores))")}
	for _, p := range profile.Builtin(false) {
		formulas = append(formulas, parsed(t, p.Formula))
	}
	for range 200 {
		var nodes, other []profile.Values
		for range 5 {
			n, o := profile.Values{}, profile.Values{}
			for _, m := range profile.Metrics {
				n[m.Name] = r.Float64() * 100
				o[m.Name] = n[m.Name]
				if f, has := factors[m.Name]; has {
					o[m.Name] *= f
				}
			}
			nodes, other = append(nodes, n), append(other, o)
		}
		for _, f := range formulas {
			a, b := f.Score(nodes), f.Score(other)
			for i := range a {
				require.InDelta(t, value(t, a[i]), value(t, b[i]), 1e-9*math.Abs(value(t, a[i]))+1e-12, f)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, p := range profile.Builtin(true) {
		f.Add(p.Formula)
	}
	f.Fuzz(func(t *testing.T, text string) {
		formula, err := profile.Parse(text)
		if err != nil {
			return
		}
		for _, s := range formula.Score([]profile.Values{{"cpu": 0.5, "energy": 10}, {}}) {
			require.True(t, s.Value != nil || s.Why != "")
		}
	})
}
