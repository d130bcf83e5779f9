// Package keyexpr implements the key expressions of Zenoh: which text is one, which is canonical, which keys two of them
// share, and which keys one has of the other.
//
// A key expression is a list of chunks joined by "/". The chunk "*" stands for exactly one chunk, "**" for any number of
// chunks, none included, and "$*" inside a chunk for any run of characters, none included. A chunk that begins with "@" is
// verbatim: no wildcard stands for it. A key is an expression without wildcards.
//
// The rules are those of Zenoh 1.x; test/zenoh compares this package with Zenoh's own code.
package keyexpr

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Expr is a canonical key expression. Two expressions stand for the same keys exactly when they are equal.
type Expr string

// MaxLength bounds an expression, in bytes: comparing two takes time in proportion to the product of their lengths.
const MaxLength = 1024

const (
	one     = "*"
	many    = "**"
	anyText = "$*" // inside a chunk
)

// Parse returns s as an expression. Text that is none is an error, and so is text that is not canonical: the error then
// names the canonical form.
func Parse(s string) (Expr, error) {
	e, err := Canonical(s)
	if err != nil {
		return "", err
	}
	if string(e) != s {
		return "", fmt.Errorf("the key expression %q is not canonical; write %q", s, e)
	}
	return e, nil
}

// ParseKey is Parse for an expression that must be a key: one without wildcards.
func ParseKey(s string) (Expr, error) {
	e, err := Parse(s)
	if err == nil && !e.IsKey() {
		return "", fmt.Errorf("the key %q contains a wildcard", s)
	}
	return e, err
}

// Canonical returns the canonical form of s: "**" once and behind each "*" beside it, "$*" once in a row, and "*" for a
// chunk that is only "$*".
func Canonical(s string) (Expr, error) {
	if s == "" {
		return "", errors.New("a key expression is not empty")
	}
	if len(s) > MaxLength {
		return "", fmt.Errorf("a key expression has at most %d bytes, this one has %d", MaxLength, len(s))
	}
	if !utf8.ValidString(s) {
		return "", errors.New("a key expression is UTF-8 text")
	}
	var chunks []string
	deep := false // a "**" that has not been written yet: it goes behind all "*" that follow it
	for at, chunk := range strings.Split(s, "/") {
		chunk, err := canonicalChunk(chunk)
		if err != nil {
			return "", fmt.Errorf("the key expression %q, chunk %d: %w", s, at+1, err)
		}
		switch {
		case chunk == many:
			deep = true
		case chunk != one && deep:
			chunks, deep = append(chunks, many, chunk), false
		default:
			chunks = append(chunks, chunk)
		}
	}
	if deep {
		chunks = append(chunks, many)
	}
	return Expr(strings.Join(chunks, "/")), nil
}

// canonicalChunk checks one chunk and returns its canonical form.
func canonicalChunk(chunk string) (string, error) {
	switch chunk {
	case "":
		return "", errors.New(`it is empty; "/" stands only between chunks`)
	case one, many:
		return chunk, nil
	}
	if at := strings.IndexAny(chunk, "#?"); at >= 0 {
		return "", fmt.Errorf("%q may not be in a key expression", chunk[at:at+1])
	}
	for strings.Contains(chunk, anyText+anyText) {
		chunk = strings.ReplaceAll(chunk, anyText+anyText, anyText)
	}
	text := strings.ReplaceAll(chunk, anyText, "")
	if strings.Contains(text, "*") {
		return "", errors.New(`"*" stands alone or behind "$"`)
	}
	if strings.Contains(text, "$") {
		return "", errors.New(`"$" stands only before "*"`)
	}
	if chunk == anyText {
		return one, nil
	}
	return chunk, nil
}

// IsKey reports whether the expression has no wildcard.
func (e Expr) IsKey() bool { return !strings.Contains(string(e), "*") }

// Prefix returns the chunks before the first wildcard, joined by "/" and without a last "/"; "" when there is none. All
// keys of the expression are this text, or begin with it and "/".
func (e Expr) Prefix() string {
	at := strings.Index(string(e), "*")
	if at < 0 {
		return string(e)
	}
	return string(e[:max(0, strings.LastIndex(string(e[:at]), "/"))])
}

// Intersects reports whether some key is one of both expressions.
func (e Expr) Intersects(other Expr) bool {
	return intersect(e.chunks(), other.chunks(), chunkRules, func(a, b string) bool {
		if verbatim(a) || verbatim(b) {
			return a == b
		}
		return a == one || b == one || intersect(letters(a), letters(b), letterRules, sameLetter)
	})
}

// Includes reports whether every key of the other expression is one of e.
func (e Expr) Includes(other Expr) bool {
	return include(e.chunks(), other.chunks(), chunkRules, func(a, b string) bool {
		if verbatim(a) || verbatim(b) {
			return a == b
		}
		return a == one || b != one && include(letters(a), letters(b), letterRules, sameLetter)
	})
}

func (e Expr) chunks() []string { return strings.Split(string(e), "/") }

// verbatim reports whether only the chunk itself stands for it.
func verbatim(chunk string) bool { return strings.HasPrefix(chunk, "@") }

// anyLetters is "$*" among the letters of a chunk; it is no valid rune.
const anyLetters = rune(-1)

// letters splits a chunk into its runes and "$*".
func letters(chunk string) []rune {
	list := make([]rune, 0, len(chunk))
	for i, part := range strings.Split(chunk, anyText) {
		if i > 0 {
			list = append(list, anyLetters)
		}
		list = append(list, []rune(part)...)
	}
	return list
}

func sameLetter(a, b rune) bool { return a == b }

// rules say which item of a list stands for any number of items, and which items it may stand for.
type rules[T any] struct {
	many   func(T) bool
	within func(T) bool
}

var (
	chunkRules = rules[string]{
		many:   func(chunk string) bool { return chunk == many },
		within: func(chunk string) bool { return !verbatim(chunk) },
	}
	letterRules = rules[rune]{
		many:   func(letter rune) bool { return letter == anyLetters },
		within: func(rune) bool { return true },
	}
)

// intersect reports whether some list is one of both patterns. It works from the ends of both: row[j] says whether the
// rests a[i:] and b[j:] share a list.
func intersect[T any](a, b []T, is rules[T], same func(a, b T) bool) bool {
	row := make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		below := row // of a[i+1:]
		row = make([]bool, len(b)+1)
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				row[j] = true
			case i < len(a) && is.many(a[i]):
				row[j] = below[j] || j < len(b) && is.within(b[j]) && row[j+1]
			case j < len(b) && is.many(b[j]):
				row[j] = row[j+1] || i < len(a) && is.within(a[i]) && below[j]
			case i < len(a) && j < len(b):
				row[j] = same(a[i], b[j]) && below[j+1]
			}
		}
	}
	return row[0]
}

// include reports whether every list of pattern b is one of pattern a, in the same way.
func include[T any](a, b []T, is rules[T], covers func(a, b T) bool) bool {
	row := make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		below := row
		row = make([]bool, len(b)+1)
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a):
				row[j] = j == len(b)
			case is.many(a[i]):
				row[j] = below[j] || j < len(b) && is.within(b[j]) && row[j+1]
			case j < len(b) && !is.many(b[j]):
				row[j] = covers(a[i], b[j]) && below[j+1]
			}
		}
	}
	return row[0]
}
