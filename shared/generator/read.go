package generator

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sample is one value of a node.
type Sample struct {
	At    time.Time
	Value float64
}

// maxLine bounds a row.
const maxLine = 1 << 20

// ReadCSV reads one column of a data.csv, of CODECO's generator or ours, as a series for each node. Rows may be in any order, nodes
// may come late, and what is no number ("NaN", empty, a list) is left out: a gap is not a zero. Of two values at one time the later
// row counts. The error says which row cannot be read at all.
func ReadCSV(r io.Reader, column string) (map[string][]Sample, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	if !lines.Scan() {
		return nil, fmt.Errorf("data.csv: there is no header: %w", firstError(lines.Err(), io.ErrUnexpectedEOF))
	}
	header := strings.Split(strings.TrimSpace(lines.Text()), ",")
	at, node, value := slices.Index(header, "time"), slices.Index(header, "node"), slices.Index(header, column)
	if at < 0 || node < 0 || value < 0 {
		return nil, fmt.Errorf("data.csv: the header has no column time, node or %s", column)
	}
	series := map[string][]Sample{}
	for number := 2; lines.Scan(); number++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		cells := strings.Split(text, ",")
		if len(cells) != len(header) {
			return nil, fmt.Errorf("data.csv: row %d has %d cells, the header %d", number, len(cells), len(header))
		}
		when, err := instant(cells[at])
		if err != nil {
			return nil, fmt.Errorf("data.csv: row %d: %w", number, err)
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(cells[value]), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		series[cells[node]] = append(series[cells[node]], Sample{when, v})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("data.csv: %w", err)
	}
	for name, s := range series {
		series[name] = inOrder(s)
	}
	return series, nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// inOrder sorts by time and keeps the last of several values at one time.
func inOrder(s []Sample) []Sample {
	slices.SortStableFunc(s, func(a, b Sample) int { return a.At.Compare(b.At) })
	kept := s[:0]
	for i, one := range s {
		if i+1 < len(s) && s[i+1].At.Equal(one.At) {
			continue
		}
		kept = append(kept, one)
	}
	return kept
}

// instant reads a time as it is written in such files: with a space or a T, or in seconds.
func instant(text string) (time.Time, error) {
	text = strings.TrimSpace(text)
	for _, form := range []string{time.DateTime, time.RFC3339Nano, "2006-01-02 15:04:05.999999"} {
		if at, err := time.Parse(form, text); err == nil {
			return at, nil
		}
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 && seconds < 1e11 {
		return time.UnixMilli(int64(seconds * 1000)).UTC(), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time", text)
}
