// Package stats has the statistics of the benchmark programs, so that a number means the same in all of them.
package stats

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// Sample is a set of measurements, in milliseconds unless noted otherwise. Results of an empty one are NaN, since 0
// would look like the best result.
type Sample []float64

// Add adds a measurement.
func (s *Sample) Add(d time.Duration) { *s = append(*s, Millis(d)) }

// Millis returns the duration in milliseconds.
func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Quantile returns the smallest measurement that is not exceeded by at least the share q of all.
func (s Sample) Quantile(q float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[max(int(math.Ceil(q*float64(len(sorted))))-1, 0)]
}

// P50, P95 and P99 are the usual quantiles.
func (s Sample) P50() float64 { return s.Quantile(0.50) }
func (s Sample) P95() float64 { return s.Quantile(0.95) }
func (s Sample) P99() float64 { return s.Quantile(0.99) }

// Median returns the middle measurement, or the mean of the two middle ones.
func (s Sample) Median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Number is a result that may be NaN, which is null in JSON.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// Processor returns the processor time of this program, including garbage collection.
func Processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Repeat calls do a number of times, checks each result, and returns the last one with the medians of the time and of the
// processor time that a call took. Checks are not measured.
func Repeat[T any](runs int, do func() (T, error), check func(T) error) (last T, ms, processor float64, err error) {
	var times, used Sample
	for range runs {
		runtime.GC() // from the former run
		begin, before := time.Now(), Processor()
		if last, err = do(); err != nil {
			return last, 0, 0, err
		}
		times.Add(time.Since(begin))
		used.Add(Processor() - before)
		if err := check(last); err != nil {
			return last, 0, 0, err
		}
	}
	return last, times.Median(), used.Median(), nil
}

// Machine describes the machine and its load.
func Machine() string {
	return fmt.Sprintf("%s/%s, %d cores, %s, load %s before the start",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), Load())
}

// Load is the load of the machine in the last minute.
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// Files measures each file and prints its result at once, or with asJSON all results at the end.
func Files[R fmt.Stringer](files []string, asJSON bool, measure func(file string) (R, error)) error {
	results := make([]R, 0, len(files))
	for _, file := range files {
		r, err := measure(file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		results = append(results, r)
		if !asJSON {
			fmt.Println(r)
		}
	}
	if asJSON {
		return JSON(results)
	}
	return nil
}

// JSON prints the value.
func JSON(v any) error {
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

// Table prints rows in columns; the first row is the head.
func Table(w io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush()
}
