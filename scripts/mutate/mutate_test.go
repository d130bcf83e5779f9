package main

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhatTestsNotice: all that can be changed compiles, and what the tests do not notice is told.
func TestWhatTestsNotice(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	r := run{pkg: "./testdata/half", tested: []string{"./testdata/half"}, workers: 2, longest: time.Minute, out: &out}
	require.NoError(t, r.sample(t.Context(), 1000, rand.New(rand.NewPCG(1, 0))))
	var unnoticed []string
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "half/") {
			unnoticed = append(unnoticed, strings.TrimSpace(line))
		}
	}
	require.ElementsMatch(t, []string{
		"half/half.go:12: >= for >: not noticed by 1 tests", // nobody could
		"half/half.go:15: && for ||: not noticed by 1 tests",
		"half/half.go:15: 0+1 for 0: not noticed by 1 tests",
		"half/half.go:15: never, for if: not noticed by 1 tests",
		"half/half.go:16: 0+1 for 0: not noticed by 1 tests",
		"half/half.go:16: != for ==: not noticed by 1 tests",
		"half/half.go:16: || for &&: not noticed by 1 tests",
		"half/half.go:17: / for *: never reached",
		"half/half.go:17: <= for >: never reached",
		"half/half.go:17: >= for >: never reached",
		"half/half.go:18: 0+1 for 0: never reached",
		"half/half.go:25: <= for <: not noticed by 1 tests", // the sixth would not be called
		"half/half.go:29: no call: not noticed by 1 tests",
		"half/half.go:38: false for true: never reached",
	}, unnoticed, out.String())
	require.Contains(t, out.String(), "./testdata/half: 13 of 27 changes noticed (48 %), 9 unnoticed, 5 never reached; of 27 places, in ")
}
