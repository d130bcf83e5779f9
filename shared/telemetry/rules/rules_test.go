package rules_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/telemetry/rules"
)

func TestID(t *testing.T) {
	t.Parallel()
	for name, begins := range map[string]string{
		"shop-1234-cpu":                "shop-1234-cpu-",
		"Shop / CPU  usage":            "shop-cpu-usage-",
		"--x--":                        "x-",
		"日本":                           "rules-",
		"":                             "rules-",
		strings.Repeat("ab-", 100):     "ab-ab-ab-",
		strings.Repeat("a", 39) + "-b": strings.Repeat("a", 39) + "-",
	} {
		id := rules.ID(name)
		require.True(t, strings.HasPrefix(id, begins), "%q: %s", name, id)
		require.True(t, rules.IsID(id), id)
		require.LessOrEqual(t, len(id), 51, "littoral- before it still fits a DNS label")
		require.Equal(t, id, rules.ID(name))
	}
}

func FuzzID(f *testing.F) {
	f.Add("a", "b")
	f.Add("A", "a")
	f.Fuzz(func(t *testing.T, one, other string) {
		require.True(t, rules.IsID(rules.ID(one)), "%q", one)
		require.Equal(t, one == other, rules.ID(one) == rules.ID(other))
	})
}
