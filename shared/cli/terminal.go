package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fatih/color"
	"golang.org/x/term"
)

// display is what the output is shown on. The zero value is a file or a pipe.
type display struct {
	width  int  // columns of a terminal; 0 = lines may be as long as they like
	live   bool // a line may be written over
	colour bool
}

// commonWidth is the width that every terminal has.
const commonWidth = 80

// displayOf looks at where the output goes. NO_COLOR is that of no-color.org.
func displayOf(out io.Writer, getenv func(string) string) display {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return display{}
	}
	d := display{width: commonWidth}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		d.width = width
	}
	d.live = getenv("TERM") != "dumb"
	d.colour = d.live && getenv("NO_COLOR") == ""
	return d
}

// columns is the width that text for people is cut to.
func (d display) columns() int {
	if d.width > 0 {
		return d.width
	}
	return commonWidth
}

var (
	good = tint(color.FgGreen)
	poor = tint(color.FgYellow)
	bad  = tint(color.FgRed)
)

func tint(a color.Attribute) *color.Color {
	c := color.New(a)
	c.EnableColor() // whether there is colour is decided by the display, not by what the library sees of the process
	return c
}

// stateColours are those of the words for states, in lower case.
var stateColours = func() map[string]*color.Color {
	words := map[string]*color.Color{}
	for c, list := range map[*color.Color]string{
		good: "available healthy finished ready running active enforced kept up ok chosen fits home held true deployed started resolved",
		poor: "pending deploying progressing created stopping stopped deleting away unknown drained cordoned stale silent inactive waiting " +
			"offered released accepted returning updated displaced cleaning unheard",
		bad: "degraded unhealthy violated lost gone failed wrong refused error false notready",
	} {
		for word := range strings.FieldsSeq(list) {
			words[word] = c
		}
	}
	return words
}()

// state returns text in the colour of the state that it begins with; it is text itself where there are no colours, or no such state.
func (d display) state(text string) string {
	if !d.colour {
		return text
	}
	word := text
	if end := strings.IndexAny(text, " ,;(:"); end >= 0 {
		word = text[:end]
	}
	if c := stateColours[strings.ToLower(word)]; c != nil {
		return c.Sprint(word) + text[len(word):]
	}
	return text
}

// states is state for a line as "web: Available, 2 pods": the word after the last colon.
func (d display) states(line string) string {
	at := strings.LastIndex(line, ": ")
	if at < 0 {
		return line
	}
	return line[:at+2] + d.state(line[at+2:])
}

// text writes a line for people, which a terminal gets broken between words, the further ones below the text of the first.
func (s *session) text(format string, args ...any) {
	line := printable(fmt.Sprintf(format, args...))
	if s.width == 0 {
		fmt.Fprintln(s.out, line)
		return
	}
	indent := len(line) - len(strings.TrimLeft(line, " (-"))
	for _, part := range hang(line, s.width, indent) {
		fmt.Fprintln(s.out, part)
	}
}

// field writes a name and its value, which is broken between words where a terminal would break it anywhere.
func (s *session) field(indent, name, value string) {
	lines := []string{value}
	if room := s.width - len(indent) - fieldColumn; s.width > 0 {
		lines = wrap(value, max(room, leastRoom))
	}
	switch name {
	case "Status", "State", "Health", "Phase":
		lines[0] = s.state(lines[0])
	}
	fmt.Fprintf(s.out, "%s%-*s %s\n", indent, fieldColumn-1, name+":", lines[0])
	for _, line := range lines[1:] {
		fmt.Fprintf(s.out, "%s%s%s\n", indent, strings.Repeat(" ", fieldColumn), line)
	}
}

const (
	fieldColumn = 14 // where values begin
	leastRoom   = 24 // columns in which text can be read
)
