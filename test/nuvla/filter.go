package nuvla

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A filter of CIMI: comparisons joined by and, or and parentheses. It is parsed into a function over a resource.
type filter func(resource) bool

// parser reads a filter.
type parser struct {
	text string
	at   int
}

// parseFilter reads the whole text. The grammar has no not, no negative number and no decimal one.
func parseFilter(text string) (f filter, err error) {
	defer func() {
		if fault, ok := recover().(string); ok {
			err = fmt.Errorf("Invalid CIMI filter. %s", fault)
		}
	}()
	p := &parser{text: text}
	f = p.or()
	if p.blank(); p.at < len(p.text) {
		p.fail("end")
	}
	return f, nil
}

func (p *parser) fail(expected string) {
	panic(fmt.Sprintf("Parse error at column %d, expected %s: %s", p.at+1, expected, p.text))
}

func (p *parser) blank() {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
}

// word takes the word if it is next.
func (p *parser) word(w string) bool {
	p.blank()
	if !strings.HasPrefix(p.text[p.at:], w) {
		return false
	}
	if rest := p.text[p.at+len(w):]; isLetter(w[0]) && rest != "" && isName(rest[0]) {
		return false
	}
	p.at += len(w)
	return true
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isName(c byte) bool {
	return isLetter(c) || c >= '0' && c <= '9' || strings.IndexByte("-_/:.", c) >= 0
}

func (p *parser) or() filter {
	f := p.and()
	for p.word("or") {
		a, b := f, p.and()
		f = func(r resource) bool { return a(r) || b(r) }
	}
	return f
}

func (p *parser) and() filter {
	f := p.one()
	for p.word("and") {
		a, b := f, p.one()
		f = func(r resource) bool { return a(r) && b(r) }
	}
	return f
}

var operators = []string{"!=", "<=", ">=", "^=", "==", "=", "<", ">"}

var mirrored = map[string]string{"<": ">", ">": "<", "<=": ">=", ">=": "<="}

func (p *parser) one() filter {
	if p.word("(") {
		f := p.or()
		if !p.word(")") {
			p.fail(")")
		}
		return f
	}
	name, left := p.operand()
	op := p.operator()
	other, right := p.operand()
	switch {
	case name != "" && other == "":
		return compare(name, op, right)
	case name == "" && other != "":
		return compare(other, cmp.Or(mirrored[op], op), left)
	}
	p.fail("an attribute and a value")
	return nil
}

func (p *parser) operator() string {
	for _, op := range operators {
		if p.word(op) {
			return op
		}
	}
	p.fail("an operator")
	return ""
}

// operand reads the name of an attribute, or a value or a list of them.
func (p *parser) operand() (name string, values []any) {
	switch {
	case p.word("["):
		for {
			_, one := p.operand()
			values = append(values, one...)
			if p.word("]") {
				return "", values
			}
			if !p.word(",") {
				p.fail("]")
			}
		}
	case p.word("true"):
		return "", []any{true}
	case p.word("false"):
		return "", []any{false}
	case p.word("null"):
		return "", []any{nil}
	case p.at < len(p.text) && (p.text[p.at] == '\'' || p.text[p.at] == '"'):
		return "", []any{p.quoted()}
	}
	from := p.at
	for p.at < len(p.text) && isName(p.text[p.at]) {
		p.at++
	}
	text := p.text[from:p.at]
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return "", []any{float64(n)}
	}
	if text == "" || !isLetter(text[0]) {
		p.fail("an attribute or a value")
	}
	return text, nil
}

func (p *parser) quoted() string {
	quote := p.text[p.at]
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == quote:
			p.at++
			return b.String()
		case c == '\\' && p.at+1 < len(p.text):
			p.at++
			b.WriteByte(p.text[p.at])
		default:
			b.WriteByte(c)
		}
	}
	p.fail("the end of a text")
	return ""
}

func compare(name, op string, values []any) filter {
	return func(r resource) bool {
		have := r.all(strings.Split(name, "/"))
		is := func(holds func(have, want any) bool) bool {
			return slices.ContainsFunc(have, func(h any) bool {
				return slices.ContainsFunc(values, func(w any) bool { return holds(h, w) })
			})
		}
		absent := len(have) == 0
		wantsNone := len(values) == 1 && values[0] == nil
		order := func(holds func(int) bool) bool {
			return is(func(h, w any) bool { return fmt.Sprintf("%T", h) == fmt.Sprintf("%T", w) && holds(ordered(h, w)) })
		}
		switch op {
		case "=", "==":
			return wantsNone && absent || is(func(h, w any) bool { return h == w })
		case "!=":
			if wantsNone {
				return !absent
			}
			return !is(func(h, w any) bool { return h == w })
		case "^=":
			return is(func(h, w any) bool { return strings.HasPrefix(fmt.Sprint(h), fmt.Sprint(w)) })
		case "<":
			return order(func(c int) bool { return c < 0 })
		case "<=":
			return order(func(c int) bool { return c <= 0 })
		case ">":
			return order(func(c int) bool { return c > 0 })
		}
		return order(func(c int) bool { return c >= 0 })
	}
}

func ordered(a, b any) int {
	if x, ok := a.(float64); ok {
		y, _ := b.(float64)
		return cmp.Compare(x, y)
	}
	return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
}
