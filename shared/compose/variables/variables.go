// Package variables puts values for the variables of a compose file, as the Compose specification says. Whoever reads a file
// uses it: the descriptor, which cannot afford the library of the specification, and the deployers, whose library is told to.
package variables

import (
	"fmt"
	"strings"
)

// Put returns the text with the values in it, and names the variables that have neither a value nor a default: they become
// empty. The error says that the text has no form of a variable, or that it demands one that is missing.
func Put(text string, value func(name string) (string, bool)) (out string, missing []string, err error) {
	p := putter{value: value}
	out, err = p.put(text)
	return out, p.missing, err
}

type putter struct {
	value   func(name string) (string, bool)
	missing []string
}

func (p *putter) put(text string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		switch n := name(rest); {
		case strings.HasPrefix(rest, "$"): // one that is meant so
			b.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "{"):
			end := closing(rest)
			if end < 0 {
				return "", fmt.Errorf("%q has no closing brace", "$"+rest)
			}
			part, err := p.braced(rest[1:end])
			if err != nil {
				return "", err
			}
			b.WriteString(part)
			text = rest[end+1:]
		case n > 0:
			b.WriteString(p.get(rest[:n]))
			text = rest[n:]
		default:
			b.WriteByte('$')
			text = rest
		}
	}
}

func (p *putter) get(name string) string {
	v, ok := p.value(name)
	if !ok {
		p.missing = append(p.missing, name)
	}
	return v
}

// braced is what stands for a variable in braces.
func (p *putter) braced(text string) (string, error) {
	n := name(text)
	called, rest := text[:n], text[n:]
	if n == 0 {
		return "", fmt.Errorf("%q is no variable", "${"+text+"}")
	}
	if rest == "" {
		return p.get(called), nil
	}
	v, set := p.value(called)
	word, colon := strings.CutPrefix(rest, ":")
	if colon { // an empty value counts as none
		set = set && v != ""
	}
	if word == "" {
		return "", fmt.Errorf("%q is no variable", "${"+text+"}")
	}
	switch sign, word := word[0], word[1:]; {
	case sign == '-' && set, sign == '?' && set:
		return v, nil
	case sign == '-', sign == '+' && set:
		return p.put(word)
	case sign == '+':
		return "", nil
	case sign == '?':
		p.missing = append(p.missing, called)
		return "", fmt.Errorf("the variable %q has no value: %s", called, word)
	}
	return "", fmt.Errorf("%q is no variable", "${"+text+"}")
}

// closing is where the brace that the text begins with is closed; -1 = nowhere.
func closing(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// name is how long the name of a variable is that the text begins with.
func name(text string) int {
	for i := range len(text) {
		c := text[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(text)
}
