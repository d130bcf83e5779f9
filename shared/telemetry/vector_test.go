package telemetry

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScan_readsWhatPrometheusWrites(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		raw  string
		want []Sample
	}{
		"nothing":       {`[]`, []Sample{}},
		"white space":   {" [ { \"metric\" : { \"a\" : \"b\" } , \"value\" : [ 1.5 , \"2\" ] } ] ", []Sample{{map[string]string{"a": "b"}, 2}}},
		"no labels":     {`[{"metric":{},"value":[1,"-Inf"]}]`, []Sample{{map[string]string{}, math.Inf(-1)}}},
		"escapes":       {`[{"metric":{"a\"b":"c\\","d":"\u00e9\\\"x"},"value":[1,"3"]}]`, []Sample{{map[string]string{`a"b`: `c\`, "d": `é\"x`}, 3}}},
		"unknown parts": {`[{"x":{"y":[1,"]",null,{}]},"metric":{"a":"b"},"value":[1,"4"],"z":true}]`, []Sample{{map[string]string{"a": "b"}, 4}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := vector([]byte(row.raw))
			require.NoError(t, err)
			require.Equal(t, row.want, got)
		})
	}
}

func TestScan_refusesWhatIsNoVector(t *testing.T) {
	t.Parallel()
	whole := `[{"metric":{"a":"b\\"},"value":[1,"4"]}]`
	for i := range len(whole) {
		_, err := vector([]byte(whole[:i]))
		require.Error(t, err, whole[:i])
	}
	for _, raw := range []string{`{}`, `[1]`, `[{"metric":{"a":1},"value":[1,"4"]}]`, `[{"metric":{}}]`, `[{"metric":{},"value":[1,2]}]`, `[{"a":"\`} {
		_, err := vector([]byte(raw))
		require.Error(t, err, raw)
	}
}
