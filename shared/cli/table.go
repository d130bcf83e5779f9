package cli

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// table writes rows in columns. Widths are kept between writes, so that rows added by a watch line up with the others.
type table struct {
	out    io.Writer
	indent string
	header []string
	widths []int
	begun  bool
	gap    int // between columns, by the first rows
	most   int // columns of text: the last cell of a row, which is free text, is cut to fit; 0 = no limit
}

// terminal is the width that every terminal has.
const terminal = 80

func newTable(out io.Writer, header ...string) *table {
	return &table{out: out, header: header, widths: make([]int, len(header))}
}

// write writes the header, the first time, and the rows.
func (t *table) write(rows ...[]string) error {
	lines := make([][]string, 0, len(rows)+1)
	if !t.begun {
		lines = append(lines, t.header)
	}
	t.begun = true
	for _, row := range rows {
		clean := make([]string, len(row))
		for i, cell := range row {
			clean[i] = printable(cell)
		}
		lines = append(lines, clean)
	}
	for _, line := range lines {
		for i, cell := range line {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
	if t.gap == 0 {
		t.gap = t.gapFor()
	}
	w := bufio.NewWriter(t.out)
	for _, line := range lines {
		var b strings.Builder
		b.WriteString(t.indent)
		if last := len(line) - 1; t.most > 0 {
			before := utf8.RuneCountInString(t.indent)
			for _, width := range t.widths[:last] {
				before += width + t.gap
			}
			line[last] = cut(line[last], max(t.most-before, 1))
		}
		for i, cell := range line {
			b.WriteString(cell)
			if i < len(line)-1 {
				b.WriteString(strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell)+t.gap))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	return w.Flush()
}

const columnGap = 3

// gapFor is smaller where that makes the table fit a terminal.
func (t *table) gapFor() int {
	gaps := len(t.widths) - 1
	wide := utf8.RuneCountInString(t.indent) + columnGap*gaps
	for _, width := range t.widths {
		wide += width
	}
	if t.most == 0 && wide > terminal && wide-gaps <= terminal {
		return columnGap - 1
	}
	return columnGap
}

// wrap breaks text into lines of so many characters, between words.
func wrap(text string, most int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= most:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

// cut shortens text to so many characters.
func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// printable makes text harmless on a terminal: agents write messages, which may contain anything.
func printable(s string) string {
	bad := func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }
	if !strings.ContainsFunc(s, bad) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if bad(r) {
			return ' '
		}
		return r
	}, s)
}

// age writes the time since at as people say it: 42s, 5m10s, 3h20m, 12h, 4d5h, 30d.
func (s *session) age(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return span(s.now().Sub(at))
}

func span(d time.Duration) string {
	d = max(d, 0)
	seconds, minutes, hours := int(d.Seconds()), int(d.Minutes()), int(d.Hours())
	switch {
	case seconds < 120:
		return fmt.Sprintf("%ds", seconds)
	case minutes < 10:
		return two(minutes, "m", seconds%60, "s")
	case minutes < 180:
		return fmt.Sprintf("%dm", minutes)
	case hours < 8:
		return two(hours, "h", minutes%60, "m")
	case hours < 48:
		return fmt.Sprintf("%dh", hours)
	case hours < 24*8:
		return two(hours/24, "d", hours%24, "h")
	}
	return fmt.Sprintf("%dd", hours/24)
}

func two(a int, unit string, b int, smaller string) string {
	if b == 0 {
		return fmt.Sprintf("%d%s", a, unit)
	}
	return fmt.Sprintf("%d%s%d%s", a, unit, b, smaller)
}

// shortID is the beginning of an application's id that lists show; its namespace ends in it, too.
func shortID(id string) string { return id[:min(len(id), 8)] }

// or returns text, or "-" for nothing.
func or(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func percent(v *float64) string {
	if v == nil {
		return "?"
	}
	return fmt.Sprintf("%.0f%%", *v)
}

func number(v *float64) string {
	if v == nil {
		return "?"
	}
	return fmt.Sprintf("%.4g", *v)
}

func watts(v *float64) string {
	if v == nil {
		return "?"
	}
	return fmt.Sprintf("%.1f", *v)
}

// bytesText writes bytes in the largest binary unit that leaves at most one digit after the point.
func bytesText(v *float64) string {
	if v == nil {
		return "?"
	}
	n := *v
	for _, unit := range []string{"B", "Ki", "Mi", "Gi", "Ti"} {
		if n < 1024 || unit == "Ti" {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0") + unit
		}
		n /= 1024
	}
	return "?"
}

// pairs writes a map as "k=v,k=v", by key; "" for none.
func pairs(m map[string]string) string {
	list := make([]string, 0, len(m))
	for k, v := range m {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}
