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
	gap    int  // between columns, by the first rows
	most   int  // columns of text: the last cell of a row, which is free text, is cut to fit; 0 = no limit
	wide   bool // it was asked for wide: nothing is broken or cut to fit a terminal

	columnsOf []int // which cells of a row are shown
	display
}

// newTable is a table with these columns; those whose name begins with wideOnly are there where everything is to be shown.
func (s *session) newTable(header ...string) *table {
	t := &table{out: s.out, wide: s.wide(), display: s.display}
	for i, name := range header {
		name, only := strings.CutPrefix(name, wideOnly)
		if !only || t.wide {
			t.header, t.columnsOf = append(t.header, name), append(t.columnsOf, i)
		}
	}
	t.widths = make([]int, len(t.header))
	return t
}

// wideOnly begins the name of a column that 80 columns have no room for.
const wideOnly = "+"

// newCut is a table whose last column is free text, which is cut to fit unless everything is to be shown.
func (s *session) newCut(header ...string) *table {
	t := s.newTable(header...)
	if !t.wide {
		t.most = s.columns()
	}
	return t
}

// write writes the header, the first time, and the rows.
func (t *table) write(rows ...[]string) error {
	lines := make([][]string, 0, len(rows)+1)
	if !t.begun {
		lines = append(lines, t.header)
	}
	t.begun = true
	for _, row := range rows {
		clean := make([]string, len(t.header))
		for i, of := range t.columnsOf {
			clean[i] = printable(row[of])
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
	t.squeeze()
	w := bufio.NewWriter(t.out)
	for _, line := range lines {
		t.row(w, line)
	}
	return w.Flush()
}

// row writes a row. Where a terminal has no room for its last cell that goes on in lines below.
func (t *table) row(w io.Writer, line []string) {
	last := len(line) - 1
	before := t.before()
	var below []string
	under := before
	switch room := t.width - before; {
	case t.most > 0:
		line[last] = cut(line[last], max(t.most-before, 1))
	case t.width == 0 || t.wide || utf8.RuneCountInString(line[last]) <= room:
	case room >= leastRoom:
		below = wrap(line[last], room)
		line[last], below = below[0], below[1:]
	default:
		under = utf8.RuneCountInString(t.indent) + 4
		line[last], below = "", wrap(line[last], t.width-under)
	}
	var b strings.Builder
	b.WriteString(t.indent)
	for i, cell := range line {
		if i < last {
			cell = cut(cell, t.widths[i])
		}
		if t.colour && stateColumns[t.header[i]] {
			b.WriteString(t.state(cell))
		} else {
			b.WriteString(cell)
		}
		if i < last {
			b.WriteString(strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell)+t.gap))
		}
	}
	fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	for _, text := range below {
		fmt.Fprintln(w, strings.Repeat(" ", under)+text)
	}
}

// stateColumns are those whose cells are states.
var stateColumns = map[string]bool{"STATUS": true, "STATE": true, "HEALTH": true, "PHASE": true, "VERDICT": true}

// before is the columns before the last cell.
func (t *table) before() int {
	wide := utf8.RuneCountInString(t.indent)
	for _, width := range t.widths[:len(t.widths)-1] {
		wide += width + t.gap
	}
	return wide
}

const (
	columnGap = 3
	leastCell = 6 // columns of a cell that is squeezed
)

// gapFor is smaller where that makes the table fit, or leaves more of the last cell.
func (t *table) gapFor() int {
	gaps := len(t.widths) - 1
	wide := utf8.RuneCountInString(t.indent) + columnGap*gaps
	for _, width := range t.widths {
		wide += width
	}
	limit := t.columns()
	if t.most > 0 {
		limit = t.most
	}
	if wide > limit && (wide-gaps <= limit || t.most > 0 || t.width > 0 && !t.wide) {
		return columnGap - 1
	}
	return columnGap
}

// squeeze makes the widest columns narrower until the row fits a terminal, without its last cell, which may go on below.
func (t *table) squeeze() {
	if t.width == 0 || t.wide {
		return
	}
	columns := t.widths[:len(t.widths)-1]
	for over := t.before() - t.width; over > 0; over-- {
		widest := 0
		for i := range columns {
			if columns[i] > columns[widest] {
				widest = i
			}
		}
		if len(columns) == 0 || columns[widest] <= leastCell {
			t.gap = 1
			return
		}
		columns[widest]--
	}
}

// wrap breaks text into lines of so many characters, between words, and within a word that is longer.
func wrap(text string, most int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= most {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for line = word; utf8.RuneCountInString(line) > most; {
			r := []rune(line)
			lines, line = append(lines, string(r[:most])), string(r[most:])
		}
	}
	return append(lines, line)
}

// hang breaks a line into several of so many characters, the further ones indented.
func hang(text string, most, indent int) []string {
	r := []rune(text)
	if len(r) <= most {
		return []string{text}
	}
	end := most
	for end > indent && r[end] != ' ' {
		end--
	}
	if end == indent {
		end = most // one long word
	}
	lines := []string{strings.TrimRight(string(r[:end]), " ")}
	for _, line := range wrap(string(r[end:]), most-indent) {
		lines = append(lines, strings.Repeat(" ", indent)+line)
	}
	return lines
}

// fit cuts a line to the width, unless everything is to be shown.
func (s *session) fit(line string) string {
	if s.wide() {
		return line
	}
	return cut(line, s.columns())
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

// when is the age, or where everything is to be shown the time with its zone, under the header whenHeader.
func (s *session) when(at time.Time) string {
	if s.wide() && !at.IsZero() {
		return zoned(at)
	}
	return s.age(at)
}

func (s *session) whenHeader() string {
	if s.wide() {
		return "TIME"
	}
	return "AGE"
}

// at writes a time, with its zone where everything is to be shown.
func (s *session) at(at time.Time) string {
	if s.wide() {
		return zoned(at)
	}
	return at.Local().Format(time.DateTime)
}

// zoned writes a time with its zone.
func zoned(at time.Time) string { return at.Local().Format(time.DateTime + "-07:00") }

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

// id and end are a whole id where everything is to be shown, else its beginning, or its end.
func (s *session) id(id string) string {
	if s.wide() {
		return id
	}
	return shortID(id)
}

func (s *session) end(id string) string {
	if s.wide() {
		return id
	}
	return shortEnd(id)
}

// shortEnd is the end of the id of a job or an event, which lists show: the beginning is the time, which those of one application share.
func shortEnd(id string) string { return id[max(len(id)-8, 0):] }

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
