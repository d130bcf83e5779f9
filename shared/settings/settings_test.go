package settings_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/settings"
)

type Inner struct {
	Wait time.Duration `envconfig:"WAIT" default:"5s"`
}

type config struct {
	Inner

	Nested Nested
	Name   string            `envconfig:"NAME" default:"none"`
	Many   []string          `envconfig:"MANY"`
	Pairs  map[string]string `envconfig:"PAIRS"`
	Count  int               `envconfig:"COUNT" default:"3"`
	On     bool              `envconfig:"ON"`
	Level  slog.Level        `envconfig:"LEVEL" default:"INFO"`
	Host   string            // is no setting
}

type Nested struct {
	Share float64 `envconfig:"SHARE"`
}

func TestReadPrefersTheFunctionsOwnValueThenTheBareOneThenTheDefault(t *testing.T) {
	t.Parallel()
	var c config
	require.NoError(t, settings.Read(settings.Map(map[string]string{
		"WAIT": "7s", "JOB_GET_WAIT": "9s", "COUNT": "4", "NAME": "", "MANY": "a,b", "PAIRS": "k:v,l:w", "ON": "true",
		"LEVEL": "WARN", "SHARE": "0.5", "HOST": "x",
	}), "job_get", &c))
	require.Equal(t, config{
		Inner: Inner{9 * time.Second}, Nested: Nested{0.5}, Many: []string{"a", "b"}, Pairs: map[string]string{"k": "v", "l": "w"},
		Count: 4, On: true, Level: slog.LevelWarn,
	}, c)

	c = config{Host: "kept"}
	require.NoError(t, settings.Read(nil, "", &c))
	require.Equal(t, config{Inner: Inner{5 * time.Second}, Name: "none", Count: 3, Host: "kept"}, c)
}

func TestReadReportsAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	var c struct {
		config

		Must string `envconfig:"MUST" required:"true"`
	}
	err := settings.Read(settings.Map(map[string]string{"COUNT": "many", "WAIT": "5"}), "", &c)
	for _, want := range []string{"COUNT", `"many"`, "WAIT", "MUST is not set"} {
		require.ErrorContains(t, err, want)
	}
	require.Error(t, settings.Read(nil, "", c), "a struct that is no pointer")
}

func TestOrAsksFurther(t *testing.T) {
	t.Parallel()
	first, second := settings.Map(map[string]string{"a": "1", "e": ""}), settings.Map(map[string]string{"a": "2", "b": "3", "e": "4"})
	both := first.Or(second)
	require.Equal(t, []string{"1", "3", "", ""}, []string{both.Get("a"), both.Get("b"), both.Get("c"), both.Get("e")})
}
