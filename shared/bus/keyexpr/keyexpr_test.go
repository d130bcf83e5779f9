package keyexpr_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/bus/keyexpr"
)

func TestCanonical_writesEachSetOfKeysInOneWay(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"a/b":             "a/b",
		"**/**":           "**",
		"**/*":            "*/**",
		"a/**/*/**/*/b":   "a/*/*/**/b",
		"a$*$*$*b":        "a$*b",
		"$*":              "*",
		"$*$*/x":          "*/x",
		"@a/**/*":         "@a/*/**",
		"größe/ü$*":       "größe/ü$*",
		"**/$*":           "*/**",
		"a/**/@b/**/*/@c": "a/**/@b/*/**/@c",
	} {
		got, err := keyexpr.Canonical(given)
		require.NoError(t, err, given)
		require.Equal(t, want, string(got), given)
		again, err := keyexpr.Canonical(string(got))
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
}

func TestParse_refusesWhatIsNoExpressionOrNotCanonical(t *testing.T) {
	t.Parallel()
	for given, why := range map[string]string{
		"":                           "not empty",
		"/a":                         "chunk 1: it is empty",
		"a/":                         "chunk 2: it is empty",
		"a//b":                       "chunk 2: it is empty",
		"a#b":                        `"#" may not be`,
		"a/b?c":                      `"?" may not be`,
		"a*":                         "stands alone",
		"***":                        "stands alone",
		"a$b":                        `"$" stands only before`,
		"a$":                         `"$" stands only before`,
		"**/**":                      `write "**"`,
		"a/$*":                       `write "a/*"`,
		"a\xff":                      "UTF-8",
		strings.Repeat("a/", 1024):   "at most 1024 bytes",
		strings.Repeat("$*", 100_00): "at most 1024 bytes",
	} {
		_, err := keyexpr.Parse(given)
		require.ErrorContains(t, err, why, given)
	}
	_, err := keyexpr.ParseKey("a/*")
	require.ErrorContains(t, err, "wildcard")
	key, err := keyexpr.ParseKey("a/@b")
	require.NoError(t, err)
	require.True(t, key.IsKey())
}

func TestRelations_ofTheContract(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		a, b                 keyexpr.Expr
		intersects, includes bool
	}{
		{"a/*", "a/b", true, true},
		{"a/*", "a/b/c", false, false},
		{"a/**", "a", true, true},
		{"**/c", "a/b/c", true, true},
		{"a$*/b", "abc/b", true, true},
		{"a$*/b", "ab", false, false},
		{"**", "@x/y", false, false},
		{"*/@x/**", "a/@x/b", true, true},
		{"a/b", "a/*", true, false},
		{"*", "**", true, false},
		{"**", "*", true, true},
		{"**", "a/**/b", true, true},
		{"a$*b$*c", "axbybzc", true, true},
		{"a$*c", "a$*b$*c", true, true},
		{"a$*b$*c", "a$*c", true, false},
		{"$*a", "a$*", true, false},
		{"*", "a$*", true, true},
		{"a$*", "*", true, false},
		{"@a/*", "@a/b", true, true},
		{"*/b", "@a/b", false, false},
	} {
		require.Equal(t, row.intersects, row.a.Intersects(row.b), "%s ~ %s", row.a, row.b)
		require.Equal(t, row.intersects, row.b.Intersects(row.a), "%s ~ %s", row.b, row.a)
		require.Equal(t, row.includes, row.a.Includes(row.b), "%s ⊇ %s", row.a, row.b)
	}
}

func TestPrefix_isWhatAllKeysBeginWith(t *testing.T) {
	t.Parallel()
	for given, want := range map[keyexpr.Expr]string{
		"a/b": "a/b", "a/*": "a", "a/b/c$*": "a/b", "**": "", "*/a": "", "a/b/**/c": "a/b",
	} {
		require.Equal(t, want, given.Prefix(), given)
	}
}

// TestRelations_agreeWithTheKeys holds both relations against all keys of up to three chunks from a small alphabet.
func TestRelations_agreeWithTheKeys(t *testing.T) {
	t.Parallel()
	var keys []keyexpr.Expr
	var grow func(prefix string, depth int)
	chunks := []string{"a", "b", "ab", "@a", "ba"}
	grow = func(prefix string, depth int) {
		for _, c := range chunks {
			keys = append(keys, keyexpr.Expr(prefix+c))
			if depth > 1 {
				grow(prefix+c+"/", depth-1)
			}
		}
	}
	grow("", 3)
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "b", "ab", "@a", "*", "**", "a$*", "$*b", "$*a$*"}
	random := func() keyexpr.Expr {
		list := make([]string, 1+r.IntN(3))
		for i := range list {
			list[i] = pieces[r.IntN(len(pieces))]
		}
		e, err := keyexpr.Canonical(strings.Join(list, "/"))
		require.NoError(t, err)
		return e
	}
	for range 2000 {
		a, b := random(), random()
		for _, key := range keys {
			inA, inB := a.Includes(key), b.Includes(key)
			if inA && inB {
				require.True(t, a.Intersects(b), "%s and %s share %s", a, b, key)
			}
			if a.Includes(b) && inB {
				require.True(t, inA, "%s includes %s, which has %s", a, b, key)
			}
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{"a/b", "**/*", "a$*$*", "$*", "/", "@a/**", "a#"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := keyexpr.Canonical(s)
		if err != nil {
			return
		}
		again, err := keyexpr.Parse(string(e))
		require.NoError(t, err)
		require.Equal(t, e, again)
		require.True(t, e.Includes(e))
		require.True(t, e.Intersects(e))
	})
}
