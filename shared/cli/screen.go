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
	out  io.Writer
	live bool
	open bool // a live line is shown
	tick int
}

func newScreen(out io.Writer, live bool) *screen { return &screen{out: out, live: live} }

// line writes a line that stays.
func (p *screen) line(format string, args ...any) {
	p.clear()
	fmt.Fprintln(p.out, printable(fmt.Sprintf(format, args...)))
}

const (
	toLineStart  = "\r\x1b[K" // and clears the line
	screenWidth  = 78         // a live line that wraps could not be written over
	barWidth     = 20
	spinnerSteps = `|/-\`
)

// status writes over the live line; without a terminal it does nothing, since the lines say enough.
func (p *screen) status(text string) {
	if !p.live {
		return
	}
	text = printable(text)
	if utf8.RuneCountInString(text) > screenWidth {
		text = string([]rune(text)[:screenWidth-3]) + "..."
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
