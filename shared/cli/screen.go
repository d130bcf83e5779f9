package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// screen writes lines, and on a terminal one live line below them that is written over.
type screen struct {
	out io.Writer
	display
	open bool // a live line is shown
	tick int
}

func newScreen(out io.Writer, d display) *screen { return &screen{out: out, display: d} }

// line writes a line that stays.
func (p *screen) line(format string, args ...any) {
	p.clear()
	text := printable(fmt.Sprintf(format, args...))
	if p.width == 0 {
		fmt.Fprintln(p.out, text)
		return
	}
	for i, line := range hang(text, p.width, stepColumn) {
		if i == 0 {
			line = p.state(line)
		}
		fmt.Fprintln(p.out, line)
	}
}

const (
	toLineStart  = "\r\x1b[K" // and clears the line
	stepColumn   = 12         // where the text of a step begins
	barWidth     = 20
	spinnerSteps = `|/-\`
)

// status writes over the live line; without a terminal it does nothing, since the lines say enough.
func (p *screen) status(text string) {
	if !p.live {
		return
	}
	text = printable(text)
	// One that wraps could not be written over.
	if most := p.columns() - 2; utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most-3]) + "..."
	}
	p.tick++
	p.open = true
	fmt.Fprintf(p.out, "%s%c %s", toLineStart, spinnerSteps[p.tick%len(spinnerSteps)], text)
}

// clear removes the live line.
func (p *screen) clear() {
	if p.open {
		fmt.Fprint(p.out, toLineStart)
		p.open = false
	}
}

// bar draws how much is done: [=====>     ] 1/2 Deploying 3s.
func bar(done, all int, what string, since time.Duration) string {
	filled := 0
	if all > 0 {
		filled = barWidth * done / all
	}
	drawn := strings.Repeat("=", filled)
	if filled < barWidth {
		drawn += ">" + strings.Repeat(" ", barWidth-filled-1)
	}
	return fmt.Sprintf("[%s] %d/%d %s %s", drawn, done, all, what, span(since))
}
