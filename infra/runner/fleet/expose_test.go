package fleet

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
)

// TestExpose_isWhatPrometheusReads: Prometheus' own parser finds every sample that the fleet passes to Append.
func TestExpose_isWhatPrometheusReads(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_800_000_000_123)
	var emitted []prometheus.Sample
	f, err := New(Options{
		Plan: Default(), File: filepath.Join(t.TempDir(), "fleet.json"), Now: func() time.Time { return now },
		Append: func(_ context.Context, round []prometheus.Sample) error {
			emitted = append(emitted, round...)
			return nil
		},
	})
	require.NoError(t, err)
	require.NoError(t, f.Emit(t.Context()))

	var out bytes.Buffer
	require.NoError(t, f.Expose(&out))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&out)
	require.NoError(t, err)
	count := 0
	for _, family := range families {
		count += len(family.GetMetric())
		for _, m := range family.GetMetric() {
			require.Equal(t, now.UnixMilli(), m.GetTimestampMs())
			at := slices.IndexFunc(emitted, func(s prometheus.Sample) bool {
				if s.Name != family.GetName() || len(s.Labels) != len(m.GetLabel()) || s.Value != m.GetUntyped().GetValue() {
					return false
				}
				for _, label := range m.GetLabel() {
					if s.Labels[label.GetName()] != label.GetValue() {
						return false
					}
				}
				return true
			})
			require.GreaterOrEqual(t, at, 0, "%s", m)
		}
	}
	require.Len(t, emitted, count)
}

func TestLine_keepsOddText(t *testing.T) {
	t.Parallel()
	got := line(prometheus.Sample{
		Name: "m", Labels: map[string]string{"a": "q\"\\\n", "label_icos.eu/x": "é"}, Value: 0.25, At: time.UnixMilli(5),
	})
	require.Equal(t, `m{a="q\"\\\n","label_icos.eu/x"="é",} 0.25 5`+"\n", got)
}
