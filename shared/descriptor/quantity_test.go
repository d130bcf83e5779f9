package descriptor

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseCPU(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text  string
		milli int64
		fault string
	}{
		"whole cores":                       {"2", 2000, ""},
		"a fraction":                        {"0.5", 500, ""},
		"a fraction without its zero":       {".5", 500, ""},
		"milli":                             {"500m", 500, ""},
		"finer than milli is rounded up":    {"100u", 1, ""},
		"a tenth is exact":                  {"0.1", 100, ""},
		"an exponent":                       {"1e2", 100_000, ""},
		"zero asks for nothing":             {"0", 0, ""},
		"negative":                          {"-1", 0, "negative"},
		"a billion cores":                   {"1000000000", 0, "more than a million cores"},
		"beyond any integer":                {"99999999999999999999999999", 0, "more than a million cores"},
		"an exponent out of reach":          {"1e999999999", 0, "out of reach"},
		"words":                             {"two", 0, "not a quantity"},
		"a unit of its own":                 {"2cores", 0, "unknown unit"},
		"not a number to YAML either":       {".nan", 0, "not a quantity"},
		"infinity":                          {".inf", 0, "not a quantity"},
		"hexadecimal":                       {"0x10", 0, "unknown unit"},
		"digits with underscores":           {"1_000", 0, "unknown unit"},
		"two points":                        {"1.2.3", 0, "not a quantity"},
		"nothing":                           {"", 0, "not a quantity"},
		"a sign alone":                      {"-", 0, "not a quantity"},
		"megabytes are no cores":            {"200Mb", 0, "unknown unit"},
		"a blank between number and suffix": {"500 m", 500, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseCPU(row.text)
			if row.fault != "" {
				require.ErrorContains(t, err, row.fault)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.milli, got)
		})
	}
}

func TestParseAmount(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text  string
		bytes int64
		fault string
	}{
		"bytes":                              {"1024", 1024, ""},
		"kibibytes":                          {"1Ki", 1 << 10, ""},
		"mebibytes":                          {"200Mi", 200 << 20, ""},
		"a fraction of gibibytes":            {"1.5Gi", 3 << 29, ""},
		"tebibytes":                          {"2Ti", 2 << 40, ""},
		"the largest":                        {"1Ei", 1 << 60, ""},
		"decimal":                            {"200M", 200_000_000, ""},
		"kilo is small":                      {"5k", 5000, ""},
		"an exponent":                        {"129e6", 129_000_000, ""},
		"an exponent in capitals":            {"129E6", 129_000_000, ""},
		"exa, not an exponent":               {"1E", 1e18, ""},
		"milli, as Kubernetes may write it":  {"128974848000m", 128974848, ""},
		"megabytes, as in the sample":        {"200Mb", 200_000_000, ""},
		"megabytes in capitals":              {"200MB", 200_000_000, ""},
		"megabytes in small letters":         {"200mb", 200_000_000, ""},
		"mebibytes spelt out":                {"200MiB", 200 << 20, ""},
		"bytes spelt out":                    {"512B", 512, ""},
		"a blank before the unit":            {"200 Mi", 200 << 20, ""},
		"rounded up to whole bytes":          {"0.5", 1, ""},
		"milli where mega was meant":         {"200m", 0, "M for millions"},
		"negative":                           {"-200Mi", 0, "negative"},
		"overflow":                           {"2Ei", 0, "more than an exbibyte"},
		"overflow far beyond":                {"999999999999999999999999999999Ei", 0, "more than an exbibyte"},
		"an unknown unit":                    {"200X", 0, "unknown unit"},
		"a unit alone":                       {"Mi", 0, "not a quantity"},
		"longer than any honest quantity":    {"0." + strings.Repeat("0", 64) + "1", 0, "not a quantity"},
		"an exponent and a unit":             {"1e3Mi", 0, "unknown unit"},
		"a lower-case g could mean anything": {"2g", 0, "unknown unit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseAmount(row.text)
			if row.fault != "" {
				require.ErrorContains(t, err, row.fault)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.bytes, got)
		})
	}
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"15m": 15 * time.Minute, "1h30m": 90 * time.Minute, "500ms": time.Second / 2, "1d": 24 * time.Hour,
		"1.5h": 90 * time.Minute, " 30s ": 30 * time.Second, "1w": 7 * 24 * time.Hour,
	} {
		got, err := parseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "15", "m", "15 minutes", "-5m", "1y", "2000w", "1.2.3s", "5m5", "soon"} {
		_, err := parseDuration(text)
		require.Error(t, err, text)
	}
}

// FuzzQuantity checks that no text causes a panic, that the result is never negative, and that a whole number is
// unchanged.
func FuzzQuantity(f *testing.F) {
	for _, text := range []string{"1", "200Mi", "200Mb", "1e9", "-1", "0.5", "128974848000m", "1Ei", "e", "b", "1ib"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (int64, error){parseCPU, parseAmount} {
			if value, err := parse(text); err == nil {
				require.GreaterOrEqual(t, value, int64(0))
				require.Less(t, value, int64(math.MaxInt64))
			}
		}
		if d, err := parseDuration(text); err == nil {
			require.GreaterOrEqual(t, d, time.Duration(0))
		}
	})
}
