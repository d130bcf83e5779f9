// Package half is what the test of mutate changes: its tests notice some of it.
package half

import "time"

const most = 3 // stays

type share float64

// Longer returns the longer of both, and how much of it the other one is.
func Longer(a, b time.Duration) (time.Duration, share) {
	if a > b {
		a, b = b, a
	}
	if b == 0 ||
		a == 0 &&
			b > most*time.Hour {
		return b, 0
	}
	return b, share(a) / share(b)
}

// Count calls each so many times.
func Count(times int, each func()) (calls int) {
	for i := 0; i < times; i++ {
		if !even(i) {
			continue
		}
		each()
		calls++
	}
	return calls
}

func even(i int) bool { return i%2 == 0 }

// Never is what no test calls.
func Never() (bool, string) { return true, "a" + "b" }
