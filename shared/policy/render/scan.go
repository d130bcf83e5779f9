package render

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/shared/policy/registry"
)

// where is the place of a placeholder, which determines what may be inserted.
type where int

const (
	inText     where = iota // inside a string: a label value, or the argument of a function
	inMatchers              // among the matchers of a selector
	inLabels                // in the list of by, without, on, ignoring, group_left, group_right
	inDuration              // a range, a step or an offset
	inNumber                // anywhere else that an expression may be
)

func (w where) String() string {
	return [...]string{"a text", "matchers", "label names", "a duration", "a number"}[w]
}

// hole is a placeholder and its sentinel: a text that the parser accepts in that place and that occurs nowhere else.
// After parsing, the sentinel is found in the tree and replaced by the value, so a value is never parsed as PromQL.
type hole struct {
	name  string
	where where
	index int
}

// Sentinels of numbers and durations are rare values. If a text happens to contain one itself, that is detected, since
// each must be in the tree exactly once. Those of numbers are small enough for float64 to represent exactly.
const (
	firstNumber = 1<<52 + 7_340_033
	firstMillis = 199_999_999_937 // six years: far beyond any allowed range
	maxHoles    = 256
)

func (h hole) sentinel(nonce string) string {
	switch h.where {
	case inNumber:
		return " " + strconv.FormatInt(firstNumber+int64(h.index), 10) + " "
	case inDuration:
		return " " + strconv.FormatInt(firstMillis+int64(h.index), 10) + "ms "
	case inMatchers:
		return " " + h.word(nonce) + `="z" ` // not empty: a selector with only empty matchers is refused
	case inLabels:
		return " " + h.word(nonce) + " "
	case inText:
	}
	return h.word(nonce)
}

// word is the sentinel as an identifier. It ends in a letter, so none is a prefix of another.
func (h hole) word(nonce string) string { return nonce + strconv.Itoa(h.index) + "z" }

// nonce returns a prefix for sentinels that the text does not contain.
func nonce(text string) string {
	for i := 0; ; i++ {
		if n := fmt.Sprintf("zzhole%dx", i); !strings.Contains(text, n) {
			return n
		}
	}
}

// scanner goes over PromQL with placeholders once. It knows only enough of the language to find out where a placeholder
// is: strings, comments, braces, brackets, and parentheses with label names. Everything else is left to the parser.
type scanner struct {
	text  string
	at    int
	nonce string
	plain bool // without placeholders: the text is already rendered
	out   strings.Builder
	holes []hole

	braces   bool     // inside the matchers of a selector
	brackets bool     // inside a range
	lists    []bool   // open parentheses: whether they contain a list of label names
	word     string   // the last word in lower case, if only blanks (and a sign) followed it
	last     byte     // the last byte that is not blank
	marks    [][2]int // where each step began: in out, and in text
}

// maxNesting limits parentheses before anything recursive processes the text.
const maxNesting = 64

// source returns the offset in the text as written for one in the text with sentinels.
func (s *scanner) source(out int) int {
	at := 0
	for _, m := range s.marks {
		if m[0] <= out {
			at = m[1] + out - m[0]
		}
	}
	return min(at, len(s.text))
}

// nesting refuses a rendered text with parentheses nested too deeply. Braces in its strings are not placeholders.
func nesting(text string) error {
	s := scanner{text: text, plain: true}
	return s.run()
}

func (s *scanner) run() error {
	for s.at < len(s.text) {
		s.marks = append(s.marks, [2]int{s.out.Len(), s.at})
		if err := s.step(); err != nil {
			return err
		}
	}
	return nil
}

var (
	// PromQL never has two braces in a row, so two begin a placeholder; of three, the first begins a selector. Existing
	// policies have blanks between the braces.
	twoBraces   = regexp.MustCompile(`^\{\s*\{`)
	threeBraces = regexp.MustCompile(`^\{\s*\{\s*\{`)
	// placeholder matches one outside of strings; inside strings braces are also text, so there they must be adjacent.
	placeholder = regexp.MustCompile(`^\{\s*\{\s*([a-zA-Z_][a-zA-Z0-9_-]{0,127})\s*\}\s*\}`)
	textual     = regexp.MustCompile(`^\{\{\s*([a-zA-Z_][a-zA-Z0-9_-]{0,127})\s*\}\}`)
)

// takesLabels are the words before parentheses with label names.
var takesLabels = map[string]bool{
	"by": true, "without": true, "on": true, "ignoring": true, "group_left": true, "group_right": true,
}

func (s *scanner) step() error {
	rest := s.text[s.at:]
	switch c := rest[0]; {
	case c == '#':
		s.comment()
		return nil
	case c == '"', c == '\'', c == '`':
		return s.quoted(c)
	case c == '{':
		return s.brace()
	case letter(c):
		n := run(rest, func(c byte) bool { return letter(c) || digit(c) })
		s.copy(n)
		s.word, s.last = strings.ToLower(rest[:n]), 'a'
		return nil
	case digit(c), c == '.':
		s.copy(run(rest, func(c byte) bool { return letter(c) || digit(c) || c == '.' }))
		s.word, s.last = "", '0'
		return nil
	}
	return s.symbol(rest[0])
}

// run returns how many bytes at the start of a text are in a class; the first one always is.
func run(text string, in func(byte) bool) int {
	n := 1
	for n < len(text) && in(text[n]) {
		n++
	}
	return n
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == ':' }

func digit(c byte) bool { return c >= '0' && c <= '9' }

func (s *scanner) symbol(c byte) error {
	switch c {
	case '}':
		s.braces = false
	case '[':
		s.brackets = true
	case ']':
		s.brackets = false
	case '(':
		if s.lists = append(s.lists, takesLabels[s.word]); len(s.lists) > maxNesting {
			return fmt.Errorf("has more than %d parentheses inside each other", maxNesting)
		}
	case ')':
		if len(s.lists) > 0 {
			s.lists = s.lists[:len(s.lists)-1]
		}
	}
	s.copy(1)
	if blank := c == ' ' || c == '\t' || c == '\n' || c == '\r'; !blank {
		if s.last = c; c != '-' && c != '+' {
			s.word = ""
		}
	}
	return nil
}

func (s *scanner) copy(n int) {
	s.out.WriteString(s.text[s.at : s.at+n])
	s.at += n
}

// comment drops a comment: a condition that is appended later must not become part of it.
func (s *scanner) comment() {
	if i := strings.IndexByte(s.text[s.at:], '\n'); i >= 0 {
		s.at += i
	} else {
		s.at = len(s.text)
	}
}

func (s *scanner) quoted(quote byte) error {
	s.copy(1)
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == quote:
			s.copy(1)
			s.word, s.last = "", '"'
			return nil
		case c == '\\' && quote != '`' && s.at+1 < len(s.text):
			s.copy(2)
		case s.plain, strings.HasPrefix(s.text[s.at:], "{{{"):
			s.copy(1)
		case strings.HasPrefix(s.text[s.at:], "{{"):
			m := textual.FindStringSubmatch(s.text[s.at:])
			if m == nil {
				return s.malformed()
			}
			s.at += len(m[0])
			if err := s.put(m[1], inText); err != nil {
				return err
			}
		default:
			s.copy(1)
		}
	}
	return fmt.Errorf("has a string that does not end")
}

// brace handles a brace, which begins a placeholder or the matchers of a selector.
func (s *scanner) brace() error {
	rest := s.text[s.at:]
	if s.plain || !twoBraces.MatchString(rest) || (!s.braces && threeBraces.MatchString(rest)) {
		s.braces, s.word, s.last = true, "", '{'
		s.copy(1)
		return nil
	}
	m := placeholder.FindStringSubmatch(rest)
	if m == nil {
		return s.malformed()
	}
	s.at += len(m[0])
	switch {
	case s.braces && (s.last == '=' || s.last == '~'):
		// A placeholder without quotes: its value is the whole text.
		s.out.WriteByte('"')
		err := s.put(m[1], inText)
		s.out.WriteByte('"')
		return err
	case s.braces:
		return s.put(m[1], inMatchers)
	case s.brackets, s.word == "offset":
		return s.put(m[1], inDuration)
	case len(s.lists) > 0 && s.lists[len(s.lists)-1]:
		return s.put(m[1], inLabels)
	}
	return s.put(m[1], inNumber)
}

func (s *scanner) malformed() error {
	rest := s.text[s.at:]
	return fmt.Errorf("has a placeholder that is not of the form {{name}}: %.40q", rest[:min(len(rest), 64)])
}

func (s *scanner) put(name string, at where) error {
	switch {
	case (name == registry.SelectorPlaceholder) != (at == inMatchers):
		if at == inMatchers {
			return fmt.Errorf("has {{%s}} among matchers, where only {{%s}} can stand", name, registry.SelectorPlaceholder)
		}
		return fmt.Errorf("has {{%s}} where %s is wanted; it stands among the matchers of a selector", name, at)
	case name == registry.ListPlaceholder && at != inLabels:
		return fmt.Errorf("has {{%s}} where %s is wanted; it stands among label names", name, at)
	case len(s.holes) >= maxHoles:
		return fmt.Errorf("has more than %d placeholders", maxHoles)
	}
	h := hole{name: name, where: at, index: len(s.holes)}
	s.holes = append(s.holes, h)
	s.out.WriteString(h.sentinel(s.nonce))
	s.word, s.last = "", 'a'
	return nil
}
