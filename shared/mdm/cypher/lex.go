// Package cypher answers questions about the metadata graph in a read-only part of Cypher.
//
// A query is one or more MATCH, each with its WHERE, and a RETURN with DISTINCT, ORDER BY, SKIP and LIMIT. It is parsed by a
// grammar written for that, and becomes one SELECT, in which whatever the caller wrote stands as a bound parameter. What the
// grammar does not know is refused by its name and place: nothing is guessed, and there is no clause that writes.
package cypher

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/littoral-project/littoral/shared/problem"
)

// kind of a token.
type kind int

const (
	end kind = iota
	word
	quoted // a name in backquotes, which is no keyword
	number
	text
	parameter
	sign
)

// token is a piece of a query. The text of a word, quoted name, parameter or text is its value; a sign's is itself.
type token struct {
	kind   kind
	text   string
	line   int
	column int // in characters, from 1
}

// is reports whether the token is the sign, or the keyword in any case.
func (t token) is(what string) bool {
	switch t.kind {
	case word:
		return strings.EqualFold(t.text, what)
	case sign:
		return t.text == what
	default:
		return false
	}
}

// String is the token as a person would quote it.
func (t token) String() string {
	switch t.kind {
	case end:
		return "the end"
	case text:
		return "a text"
	case parameter:
		return "$" + problem.Brief(t.text, 40)
	default:
		return problem.Brief(t.text, 40)
	}
}

// fault is the error of a query, at the token where it begins.
func (t token) fault(format string, args ...any) error {
	e := problem.New(problem.Invalid, "the query is not understood")
	e.Fields = []problem.Field{{Path: "query", Line: t.line, Column: t.column, Detail: problem.New(problem.Invalid, format, args...).Detail}}
	return e
}

// MaxQuery bounds a query, in bytes.
const MaxQuery = 16 << 10

// lexer cuts a query into tokens.
type lexer struct {
	rest         string
	line, column int
}

func lex(query string) ([]token, error) {
	l := &lexer{query, 1, 1}
	var tokens []token
	for {
		if err := l.space(); err != nil {
			return nil, err
		}
		t, err := l.next()
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
		if t.kind == end {
			return tokens, nil
		}
	}
}

// take consumes n bytes and returns them.
func (l *lexer) take(n int) string {
	taken := l.rest[:n]
	l.rest = l.rest[n:]
	for _, c := range taken {
		if l.column++; c == '\n' {
			l.line, l.column = l.line+1, 1
		}
	}
	return taken
}

func (l *lexer) here() token { return token{line: l.line, column: l.column} }

// space skips spaces and comments.
func (l *lexer) space() error {
	for l.rest != "" {
		c, size := utf8.DecodeRuneInString(l.rest)
		switch {
		case unicode.IsSpace(c):
			l.take(size)
		case strings.HasPrefix(l.rest, "//"):
			line, _, _ := strings.Cut(l.rest, "\n")
			l.take(len(line))
		case strings.HasPrefix(l.rest, "/*"):
			n := strings.Index(l.rest, "*/")
			if n < 0 {
				return l.here().fault("a comment does not end")
			}
			l.take(n + 2)
		default:
			return nil
		}
	}
	return nil
}

// signs are those of more than one character first.
var signs = []string{
	"<>", "<=", ">=", "=~", "..", "(", ")", "[", "]", "{", "}", ",", ".", ":", ";", "|", "+", "-", "*", "/", "%", "^", "=", "<", ">", "!", "&",
}

func letter(c rune) bool { return c == '_' || unicode.IsLetter(c) }

func (l *lexer) next() (token, error) {
	t := l.here()
	if l.rest == "" {
		return t, nil
	}
	c, _ := utf8.DecodeRuneInString(l.rest)
	switch {
	case letter(c):
		t.kind, t.text = word, l.take(run(l.rest))
		return t, nil
	case c >= '0' && c <= '9', c == '.' && len(l.rest) > 1 && l.rest[1] >= '0' && l.rest[1] <= '9':
		return l.number(t)
	case c == '$':
		l.take(1)
		n := run(l.rest)
		if n == 0 {
			return t, t.fault("a parameter has a name")
		}
		t.kind, t.text = parameter, l.take(n)
		return t, nil
	case c == '\'', c == '"':
		return l.quote(t, byte(c))
	case c == '`':
		name, _, found := strings.Cut(l.rest[1:], "`")
		if !found || name == "" {
			return t, t.fault("a name in backquotes does not end, or is empty")
		}
		l.take(len(name) + 2)
		t.kind, t.text = quoted, name
		return t, nil
	}
	for _, s := range signs {
		if strings.HasPrefix(l.rest, s) {
			t.kind, t.text = sign, l.take(len(s))
			return t, nil
		}
	}
	return t, t.fault("%q stands for nothing here", c)
}

// run is how many bytes of s are a name.
func run(s string) int {
	for i, c := range s {
		if !letter(c) && !unicode.IsDigit(c) {
			return i
		}
	}
	return len(s)
}

// number reads a whole or decimal number. Two points after it are those of a range.
func (l *lexer) number(t token) (token, error) {
	i := digits(l.rest, 0)
	if i < len(l.rest) && l.rest[i] == '.' && (i+1 == len(l.rest) || l.rest[i+1] != '.') {
		if i = digits(l.rest, i+1); l.rest[i-1] == '.' {
			return t, t.fault("a number does not end in a point")
		}
	}
	if i < len(l.rest) && (l.rest[i] == 'e' || l.rest[i] == 'E') {
		j := i + 1
		if j < len(l.rest) && (l.rest[j] == '-' || l.rest[j] == '+') {
			j++
		}
		k := digits(l.rest, j)
		if k == j || k-j > 3 {
			return t, t.fault("the exponent of a number has one to three digits")
		}
		i = k
	}
	if c, _ := utf8.DecodeRuneInString(l.rest[i:]); letter(c) {
		return t, t.fault("a number ends in a letter")
	}
	if t.kind, t.text = number, l.take(i); len(t.text) > 40 {
		return t, t.fault("a number has more than 40 characters")
	}
	if strings.HasPrefix(t.text, ".") {
		t.text = "0" + t.text
	}
	if len(t.text) > 1 && t.text[0] == '0' && t.text[1] != '.' && t.text[1] != 'e' && t.text[1] != 'E' {
		return t, t.fault("a number does not begin with 0")
	}
	return t, nil
}

func digits(s string, from int) int {
	for from < len(s) && s[from] >= '0' && s[from] <= '9' {
		from++
	}
	return from
}

// escapes are the characters after a backslash.
var escapes = map[byte]string{'\\': `\`, '\'': "'", '"': `"`, 'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f"}

func (l *lexer) quote(t token, mark byte) (token, error) {
	var value strings.Builder
	l.take(1)
	for l.rest != "" {
		switch c := l.rest[0]; {
		case c == mark:
			l.take(1)
			t.kind, t.text = text, value.String()
			return t, nil
		case c == '\\' && len(l.rest) > 1 && escapes[l.rest[1]] != "":
			value.WriteString(escapes[l.rest[1]])
			l.take(2)
		case c == '\\':
			return t, l.here().fault(`a backslash is followed by one of \ ' " n t r b f`)
		case c == 0:
			return t, l.here().fault("a text holds a NUL character")
		default:
			_, size := utf8.DecodeRuneInString(l.rest)
			value.WriteString(l.take(size))
		}
	}
	return t, t.fault("a text does not end")
}
