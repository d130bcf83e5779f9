package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// sample is a set of measurements, in milliseconds unless said otherwise.
type sample []float64

func (s *sample) add(d time.Duration) { *s = append(*s, millis(d)) }

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quantile returns the smallest measurement that at least the share q of all do not exceed.
func (s sample) quantile(q float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[max(int(math.Ceil(q*float64(len(sorted))))-1, 0)]
}

func (s sample) p50() float64 { return s.quantile(0.50) }
func (s sample) p99() float64 { return s.quantile(0.99) }

// table prints rows in columns; the first row is the head.
func table(w io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush()
}

// say formats one number with two digits after the point.
func say(f float64) string { return fmt.Sprintf("%.2f", f) }
