package cypher

import (
	"encoding/json"
	"slices"
	"strings"
)

// Operators bind in this order, the loosest first: OR, XOR, AND, NOT, comparisons, + and -, * / and %, signs, access.

func (p *parser) expression() (expr, error) {
	back, err := p.deeper()
	if err != nil {
		return nil, err
	}
	defer back()
	return p.chain(0)
}

// words are the operators that are words, from the loosest.
var words = []string{"OR", "XOR", "AND"}

func (p *parser) chain(level int) (expr, error) {
	if level == len(words) {
		return p.negation()
	}
	left, err := p.chain(level + 1)
	for err == nil && p.peek().is(words[level]) {
		t := p.take()
		var right expr
		if right, err = p.chain(level + 1); err == nil {
			left = binary{t, words[level], left, right}
		}
	}
	return left, err
}

func (p *parser) negation() (expr, error) {
	t := p.peek()
	if !p.accept("NOT") {
		return p.comparison()
	}
	back, err := p.deeper()
	if err != nil {
		return nil, err
	}
	defer back()
	of, err := p.negation()
	return not{t, of}, err
}

var comparisons = []string{"=", "<>", "<", "<=", ">", ">=", "=~"}

func (p *parser) comparison() (expr, error) {
	left, err := p.sum()
	compared := false
	for err == nil {
		t := p.peek()
		switch {
		case t.kind == sign && slices.Contains(comparisons, t.text):
			if compared {
				return nil, t.fault("comparisons in a row are not served: join them by AND")
			}
			compared = true
			p.take()
			left, err = p.compared(t, t.text, left)
		case t.is("IN"):
			p.take()
			left, err = p.compared(t, "IN", left)
		case t.is("CONTAINS"):
			p.take()
			left, err = p.compared(t, "CONTAINS", left)
		case t.is("STARTS"), t.is("ENDS"):
			p.take()
			if err = p.expect("WITH", "after "+strings.ToUpper(t.text)); err == nil {
				left, err = p.compared(t, strings.ToUpper(t.text)+" WITH", left)
			}
		case t.is("IS"):
			p.take()
			negated := p.accept("NOT")
			if err = p.expect("NULL", "after IS"); err == nil {
				left = isNull{t, left, negated}
			}
		default:
			return left, nil
		}
	}
	return left, err
}

func (p *parser) compared(t token, op string, left expr) (expr, error) {
	right, err := p.sum()
	return binary{t, op, left, right}, err
}

func (p *parser) sum() (expr, error) {
	left, err := p.product()
	for err == nil && (p.peek().is("+") || p.peek().is("-")) {
		t := p.take()
		var right expr
		if right, err = p.product(); err == nil {
			left = binary{t, t.text, left, right}
		}
	}
	return left, err
}

func (p *parser) product() (expr, error) {
	left, err := p.signed()
	for err == nil && (p.peek().is("*") || p.peek().is("/") || p.peek().is("%")) {
		t := p.take()
		var right expr
		if right, err = p.signed(); err == nil {
			left = binary{t, t.text, left, right}
		}
	}
	if t := p.peek(); err == nil && t.is("^") {
		return nil, t.fault("^ is not served")
	}
	return left, err
}

func (p *parser) signed() (expr, error) {
	t := p.peek()
	switch {
	case p.accept("+"):
	case p.accept("-"):
		back, err := p.deeper()
		if err != nil {
			return nil, err
		}
		defer back()
		of, err := p.signed()
		return minus{t, of}, err
	}
	return p.accessed()
}

// accessed reads a value and what is asked of it: .name, [0] and :Type.
func (p *parser) accessed() (expr, error) {
	of, err := p.primary()
	for err == nil {
		t := p.peek()
		switch {
		case p.accept("."):
			key := p.take()
			if key.kind != word && key.kind != quoted {
				return nil, key.fault("a name is expected after a point, not %s", key)
			}
			if p.peek().is("(") {
				return nil, key.fault("there is no function that ends in .%s: known are %s", key, names())
			}
			of = access{t, of, key.text}
		case p.accept("["):
			var at expr
			if at, err = p.expression(); err != nil {
				return nil, err
			}
			if dots := p.peek(); dots.is("..") {
				return nil, dots.fault("a part of a list is not served")
			}
			of, err = element{t, of, at}, p.expect("]", "after the place in a list")
		case t.is(":"):
			var groups [][]string
			groups, err = p.labels()
			of = labels{t, of, groups}
		default:
			return of, nil
		}
	}
	return of, err
}

func (p *parser) primary() (expr, error) {
	t := p.peek()
	switch {
	case t.kind == number:
		p.take()
		return literal{t, t.text}, nil
	case t.kind == text:
		p.take()
		encoded, err := json.Marshal(t.text)
		return literal{t, string(encoded)}, err
	case t.kind == parameter:
		p.take()
		return param{t}, nil
	case t.is("("):
		return p.parenthesis()
	case t.is("["):
		return p.list()
	case t.is("{"):
		members, err := p.members()
		return mapping{t, members}, err
	case t.is("true"), t.is("false"), t.is("null"):
		p.take()
		return literal{t, strings.ToLower(t.text)}, nil
	case t.kind == word && (p.ahead().is("(") || p.ahead().is("{")):
		return p.call()
	case t.kind == word && reserved(t.text):
		if err := refuse(t); err != nil {
			return nil, err
		}
		return nil, t.fault("a value is expected, not %s", t)
	case t.kind == word, t.kind == quoted:
		p.take()
		return variable{t}, nil
	}
	return nil, t.fault("a value is expected, not %s", t)
}

// reserved reports whether a word cannot be the name of a variable unless it stands in backquotes.
func reserved(name string) bool {
	for _, keyword := range []string{"MATCH", "WHERE", "RETURN", "ORDER", "SKIP", "LIMIT", "AND", "OR", "XOR", "NOT", "IN", "IS", "AS", "DISTINCT", "CASE", "UNION", "WITH", "UNWIND", "OPTIONAL", "CALL"} {
		if strings.EqualFold(name, keyword) {
			return true
		}
	}
	return false
}

// parenthesis reads a pattern that is asked for, if a relation follows on what can be a node, else a value in parentheses.
func (p *parser) parenthesis() (expr, error) {
	t, within := p.peek(), p.ahead()
	isNode := within.kind == word || within.kind == quoted || within.is(":") || within.is("{") || within.is(")")
	if end := p.closed[p.at]; isNode && end >= 0 && p.stepAt(end+1) {
		found, err := p.pattern()
		return exists{t, found}, err
	}
	p.take()
	value, err := p.expression()
	if err != nil {
		return nil, err
	}
	return value, p.expect(")", "after a value in parentheses")
}

func (p *parser) list() (expr, error) {
	l := list{token: p.take()}
	for !p.accept("]") {
		if len(l.items) > 0 {
			if t := p.peek(); t.is("|") || t.is("IN") || t.is("WHERE") {
				return nil, t.fault("a list that is made of another one is not served")
			}
			if err := p.expect(",", "between items of a list"); err != nil {
				return nil, err
			}
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		if t := p.peek(); t.is("|") || t.is("WHERE") {
			return nil, t.fault("a list that is made of another one is not served")
		}
		l.items = append(l.items, value)
	}
	return l, nil
}

func (p *parser) call() (expr, error) {
	c := call{token: p.take()}
	if c.name = strings.ToLower(c.text); p.peek().is("{") {
		return nil, c.fault("%s { } is not served", strings.ToUpper(c.name))
	}
	if _, known := functions[c.name]; !known {
		return nil, c.fault("there is no function %s: known are %s", c.token, names())
	}
	p.take() // the parenthesis
	c.distinct = p.accept("DISTINCT")
	if c.name == "count" && p.accept("*") {
		c.star = true
		return c, p.expect(")", "after count(*")
	}
	for !p.accept(")") {
		if len(c.args) > 0 {
			if err := p.expect(",", "between arguments"); err != nil {
				return nil, err
			}
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		c.args = append(c.args, value)
	}
	f := functions[c.name]
	switch {
	case len(c.args) < f.least || len(c.args) > f.most:
		return nil, c.fault("%s has %d arguments, which is not how many it takes", c.name, len(c.args))
	case c.distinct && !f.aggregate:
		return nil, c.fault("DISTINCT stands in aggregates only, and %s is none", c.name)
	}
	return c, nil
}
