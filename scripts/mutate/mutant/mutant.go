// Package mutant is what changed code calls: each change that scripts/mutate has put into a package has a number, and a run of the tests
// has at most one of them, which the environment names. So the tests are built once, and not for each change.
package mutant

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"sync"
)

const (
	// Chosen names the change that takes effect, a number from 1; without it none does.
	Chosen = "LITTORAL_MUTANT"
	// Reached names a file to which the number of each change is added, a line each, once its place was reached.
	Reached = "LITTORAL_MUTANTS_REACHED"
)

var (
	chosen, _ = strconv.Atoi(os.Getenv(Chosen))
	file      = os.Getenv(Reached)
	seen      sync.Map
)

// On tells whether the change takes effect.
func On(change int) bool {
	if file != "" {
		note(change)
	}
	return change == chosen
}

func note(change int) {
	if _, known := seen.LoadOrStore(change, true); known {
		return
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := fmt.Fprintln(f, change); err != nil {
		panic(err)
	}
}

// Less is a < b, or a <= b.
func Less[T cmp.Ordered](change int, a, b T) bool {
	if On(change) {
		return a <= b
	}
	return a < b
}

// AtMost is a <= b, or a < b.
func AtMost[T cmp.Ordered](change int, a, b T) bool {
	if On(change) {
		return a < b
	}
	return a <= b
}

// And is a && b(), or a || b().
func And(change int, a bool, b func() bool) bool {
	if On(change) {
		return a || b()
	}
	return a && b()
}

// Or is a || b(), or a && b().
func Or(change int, a bool, b func() bool) bool {
	if On(change) {
		return a && b()
	}
	return a || b()
}

type number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

// Add is a + b, or a - b.
func Add[T number](change int, a, b T) T {
	if On(change) {
		return a - b
	}
	return a + b
}

// Sub is a - b, or a + b.
func Sub[T number](change int, a, b T) T {
	if On(change) {
		return a + b
	}
	return a - b
}

// Mul is a * b, or a / b.
func Mul[T number](change int, a, b T) T {
	if On(change) {
		return a / b
	}
	return a * b
}

// Quo is a / b, or a * b.
func Quo[T number](change int, a, b T) T {
	if On(change) {
		return a * b
	}
	return a / b
}

// Number is n, or n + 1.
func Number[T number](change int, n T) T {
	if On(change) {
		return n + 1
	}
	return n
}
