package template_test

import (
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/policy/template"
	"github.com/littoral-project/littoral/shared/problem"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	for _, name := range template.Names() {
		found, ok := template.Lookup(name)
		require.True(t, ok)
		require.NotEmpty(t, found.Expr)
		require.NotEmpty(t, found.Description)
	}
	old, _ := template.Lookup("app-host-cpu-usage")
	require.Equal(t, template.CPUUsage, old.Name)
	_, ok := template.Lookup("magic")
	require.False(t, ok)
	require.Len(t, template.All(), 12, "as many as the policies page names")
}

func TestComplete(t *testing.T) {
	t.Parallel()
	type vars = map[string]any
	for sentence, test := range map[string]struct {
		name        string
		given, want vars
		fault       string
	}{
		"defaults, and what is not asked for is left out": {
			name: template.SecurityEvents, given: vars{"severity": "high", "x": 1},
			want: vars{"maxEvents": 0.0, "severity": "high", "eventName": ".+"},
		},
		"an older name": {name: template.CPUUsage, given: vars{"maxCpu": "0.5"}, want: vars{"threshold": 0.5}},
		"the name itself goes before an older one": {
			name: template.CPUUsage, given: vars{"maxCpu": 0.5, "threshold": 0.25}, want: vars{"threshold": 0.25},
		},
		"a duration": {
			name: template.LostTelemetry, given: vars{"timeout": "1h30m"},
			want: vars{"timeout": 90 * time.Minute, "lookback": 6 * time.Hour, "gap": time.Minute, "since": 0.0},
		},
		"too short": {
			name: template.LostTelemetry, given: vars{"timeout": "1ms"}, fault: "v.timeout: must be within 1 and 43200 seconds",
		},
		"not a duration": {
			name: template.LostTelemetry, given: vars{"timeout": 5}, fault: "v.timeout: must be a duration",
		},
		"missing": {
			name: template.DeviceAvailable, given: vars{}, fault: "v.device: is required by template device-available",
		},
		"not a pattern": {
			name: template.DeviceAvailable, given: vars{"device": "("}, fault: "v.device: is not a regular expression",
		},
		"empty": {name: template.DeviceAvailable, given: vars{"device": ""}, fault: "v.device: must be a text"},
		"out of its bounds": {
			name: template.SCAScore, given: vars{"threshold": 101}, fault: "v.threshold: must be within 0 and 100",
		},
		"infinite": {
			name: template.SCAScore, given: vars{"threshold": "Inf"}, fault: "v.threshold: must be a number",
		},
		"hexadecimal": {
			name: template.SCAScore, given: vars{"threshold": "0x10"}, fault: "v.threshold: must be a number",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			found, _ := template.Lookup(test.name)
			var faults problem.Faults
			got := found.Complete(test.given, "v", &faults)
			if test.fault != "" {
				require.ErrorContains(t, faults.Err("no"), test.fault)
				return
			}
			require.NoError(t, faults.Err("no"))
			require.Equal(t, test.want, got)
		})
	}
}

// FuzzDuration compares parsing and formatting durations with Prometheus' own.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{
		"0", "5m", "1h30m", "1y2w3d4h5m6s7ms", "1s1m", "m", "", "0s", "400d", "292y",
		"99999999y",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := template.ParseDuration(text)
		want, err := model.ParseDuration(text)
		if !ok {
			// Ours is limited to ten years.
			require.True(t, err != nil || time.Duration(want) > 10*365*24*time.Hour || len(text) > 64, text)
			return
		}
		require.NoError(t, err)
		require.Equal(t, time.Duration(want), got)
		again, err := model.ParseDuration(template.FormatDuration(got))
		require.NoError(t, err)
		require.Equal(t, got, time.Duration(again))
	})
}
