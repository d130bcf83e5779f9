package template

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Prometheus durations are parsed and formatted here rather than with prometheus/common, which would add protocol
// buffers to every function that only lists policies.

const (
	day  = 24 * time.Hour
	week = 7 * day
	year = 365 * day
)

var (
	durationForm = regexp.MustCompile(
		`^(?:([0-9]+)y)?(?:([0-9]+)w)?(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?(?:([0-9]+)ms)?$`)
	units = []struct {
		size time.Duration
		name string
	}{
		{year, "y"},
		{week, "w"},
		{day, "d"},
		{time.Hour, "h"},
		{time.Minute, "m"},
		{time.Second, "s"},
		{time.Millisecond, "ms"},
	}
)

// longest keeps every sum of durations far from overflow.
const longest = 10 * year

// ToDuration accepts a duration of at least a millisecond: a time.Duration, or a text in Prometheus' format.
func ToDuration(value any) (time.Duration, bool) {
	switch value := value.(type) {
	case time.Duration:
		return value, value >= time.Millisecond && value <= longest
	case string:
		d, ok := ParseDuration(strings.TrimSpace(value))
		return d, ok && d > 0
	}
	return 0, false
}

// ParseDuration parses a duration like Prometheus: 90s, 1h30m, 1d, or 0.
func ParseDuration(text string) (time.Duration, bool) {
	if text == "0" {
		return 0, true
	}
	if text == "" || len(text) > 64 {
		return 0, false
	}
	parts := durationForm.FindStringSubmatch(text)
	if parts == nil {
		return 0, false
	}
	var total time.Duration
	for i, part := range parts[1:] {
		if part == "" {
			continue
		}
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n > int64(longest/units[i].size) {
			return 0, false
		}
		if total += time.Duration(n) * units[i].size; total > longest {
			return 0, false
		}
	}
	return total, true
}

// FormatDuration formats a duration for Prometheus; fractions of a millisecond are dropped.
func FormatDuration(d time.Duration) string {
	if d < time.Millisecond {
		return "0s"
	}
	var b strings.Builder
	for _, u := range units {
		// Years and weeks are used only without a remainder, since 1d6h is easier to read than 1w2d3h.
		if u.size > day && d%u.size != 0 {
			continue
		}
		if n := d / u.size; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + u.name)
			d %= u.size
		}
	}
	return b.String()
}
