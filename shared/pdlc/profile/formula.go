// Package profile scores nodes by formulas over what is known of them: how green one is, how resilient, how fast.
//
// A formula is arithmetic on metrics that have units. It is read and its units are checked before anything is stored; a score has
// none, so in which unit a metric is given cannot change the order of nodes. There are no loops, no names but those of the metrics
// and functions, and a bound on its size, so a formula from anybody may be run.
package profile

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Unit is a product of powers of the base units. The zero value is that of plain numbers.
type Unit struct{ Watt, Bit, Second, Core, Byte int8 }

// Units of metrics.
var (
	None    = Unit{}
	Watts   = Unit{Watt: 1}
	Rate    = Unit{Bit: 1, Second: -1}
	Seconds = Unit{Second: 1}
	Cores   = Unit{Core: 1}
	Bytes   = Unit{Byte: 1}
)

func (u Unit) times(o Unit, sign int8) Unit {
	return Unit{u.Watt + sign*o.Watt, u.Bit + sign*o.Bit, u.Second + sign*o.Second, u.Core + sign*o.Core, u.Byte + sign*o.Byte}
}

// String names the unit: W, bit/s, s, cores, bytes, and products of them.
func (u Unit) String() string {
	var over, under []string
	for _, p := range []struct {
		name  string
		power int8
	}{{"W", u.Watt}, {"bit", u.Bit}, {"core", u.Core}, {"byte", u.Byte}, {"s", u.Second}} {
		list, power := &over, p.power
		if power < 0 {
			list, power = &under, -power
		}
		for range power {
			*list = append(*list, p.name)
		}
	}
	switch {
	case len(over)+len(under) == 0:
		return "no unit"
	case len(under) == 0:
		return strings.Join(over, "*")
	case len(over) == 0:
		over = []string{"1"}
	}
	return strings.Join(over, "*") + "/" + strings.Join(under, "/")
}

// Metric is what a formula may name.
type Metric struct {
	Name  string
	Unit  Unit
	About string
}

// Metrics are all of them, in the order of CODECO's tables 14 to 16.
var Metrics = []Metric{
	{"cpu", None, "share of the cpu in use, 0 to 1"},
	{"mem", None, "share of the memory in use, 0 to 1"},
	{"cores", Cores, "of the node"},
	{"memory", Bytes, "of the node"},
	{"node_failure", None, "moving average of its failures, 0 to 1"},
	{"energy", Watts, "what it draws"},
	{"security", None, "share of the best security score, 0 to 1"},
	{"freshness", Seconds, "age of its newest telemetry"},
	{"portability", None, "share of the other nodes that could take what it runs, 0 to 1"},
	{"link_failure", None, "sum over its links of the moving averages of their failures"},
	{"degree", None, "how many links it has"},
	{"ebw", Rate, "bandwidth that is left on its links outwards"},
	{"ibw", Rate, "bandwidth that is left on the links to it"},
	{"latency", Seconds, "mean round trip over its links"},
	{"cpu_forecast", None, "greatest share of the cpu that is foreseen, 0 to 1"},
}

func metric(name string) (int, bool) {
	for i := range Metrics {
		if Metrics[i].Name == name {
			return i, true
		}
	}
	return 0, false
}

// Values are the metrics of one node by name; what is not known is not there.
type Values map[string]float64

// Formula is one that was read.
type Formula struct {
	text string
	root node
}

// String is the text that the formula was read from.
func (f *Formula) String() string { return f.text }

// Bounds of a formula.
const (
	maxText  = 1000
	maxNodes = 200
	maxDepth = 30
)

// Parse reads a formula and checks its units. The error says what is wrong and at which character.
func Parse(text string) (*Formula, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("has more than %d characters", maxText)
	}
	p := parser{text: text}
	root, err := p.sum(0)
	if err != nil {
		return nil, err
	}
	if p.skip(); p.at < len(text) {
		return nil, p.fault("%q is not expected", text[p.at:min(len(text), p.at+10)])
	}
	if root.unit != None {
		return nil, fmt.Errorf("the score would have the unit %s: divide by something of it, such as share(x), which is x as a share of the greatest", root.unit)
	}
	return &Formula{text, root}, nil
}

// kinds of nodes of a formula.
type operation int

const (
	number operation = iota
	name
	add
	subtract
	multiply
	divide
	negate
	call
	less // of the comparisons, with swapped sides for greater
)

type node struct {
	op   operation
	unit Unit
	v    float64
	ref  int    // of a name: index in Metrics
	fn   string // of a call
	args []node
}

type parser struct {
	text  string
	at    int
	nodes int
}

func (p *parser) fault(format string, args ...any) error {
	return fmt.Errorf("character %d: %s", p.at+1, fmt.Sprintf(format, args...))
}

func (p *parser) skip() {
	for p.at < len(p.text) && strings.ContainsRune(" \t\r\n", rune(p.text[p.at])) {
		p.at++
	}
}

// take moves on if the next character is one of those.
func (p *parser) take(chars string) (byte, bool) {
	if p.skip(); p.at < len(p.text) && strings.IndexByte(chars, p.text[p.at]) >= 0 {
		p.at++
		return p.text[p.at-1], true
	}
	return 0, false
}

func (p *parser) count(depth int) error {
	if p.nodes++; p.nodes > maxNodes || depth > maxDepth {
		return p.fault("the formula has more than %d parts, or %d levels", maxNodes, maxDepth)
	}
	return nil
}

func (p *parser) sum(depth int) (node, error) {
	left, err := p.product(depth + 1)
	for err == nil {
		c, ok := p.take("+-")
		if !ok {
			return left, nil
		}
		var right node
		if right, err = p.product(depth + 1); err != nil {
			break
		}
		if left.unit != right.unit {
			return left, p.fault("%s and %s cannot be added or subtracted", left.unit, right.unit)
		}
		op := add
		if c == '-' {
			op = subtract
		}
		left = node{op: op, unit: left.unit, args: []node{left, right}}
		err = p.count(depth)
	}
	return left, err
}

func (p *parser) product(depth int) (node, error) {
	left, err := p.factor(depth + 1)
	for err == nil {
		c, ok := p.take("*/")
		if !ok {
			return left, nil
		}
		var right node
		if right, err = p.factor(depth + 1); err != nil {
			break
		}
		if c == '*' {
			left = node{op: multiply, unit: left.unit.times(right.unit, 1), args: []node{left, right}}
		} else {
			left = node{op: divide, unit: left.unit.times(right.unit, -1), args: []node{left, right}}
		}
		err = p.count(depth)
	}
	return left, err
}

func (p *parser) factor(depth int) (node, error) {
	if err := p.count(depth); err != nil {
		return node{}, err
	}
	if _, minus := p.take("-"); minus {
		n, err := p.factor(depth + 1)
		return node{op: negate, unit: n.unit, args: []node{n}}, err
	}
	if _, open := p.take("("); open {
		n, err := p.sum(depth + 1)
		if err != nil {
			return n, err
		}
		if _, closed := p.take(")"); !closed {
			return n, p.fault("a ) is missing")
		}
		return n, nil
	}
	p.skip()
	start := p.at
	for p.at < len(p.text) && (letter(p.text[p.at]) || p.at > start && digit(p.text[p.at])) {
		p.at++
	}
	if p.at == start {
		return p.literal()
	}
	word := p.text[start:p.at]
	if _, open := p.take("("); open {
		return p.call(word, depth)
	}
	i, known := metric(word)
	if !known {
		p.at = start
		return node{}, p.fault("there is no metric %q", word)
	}
	return node{op: name, unit: Metrics[i].Unit, ref: i}, nil
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

func (p *parser) literal() (node, error) {
	start := p.at
	for p.at < len(p.text) && (digit(p.text[p.at]) || p.text[p.at] == '.') {
		p.at++
	}
	v, err := strconv.ParseFloat(p.text[start:p.at], 64)
	if err != nil || math.IsInf(v, 0) {
		p.at = start
		return node{}, p.fault("a number, a metric, a function or ( is expected")
	}
	return node{op: number, v: v}, nil
}

// functions by name: how many arguments they take.
var functions = map[string]int{"min": 2, "max": 2, "clamp": 3, "share": 1, "greatest": 1, "least": 1, "mean": 1, "if": 3, "above": 2, "number": 1, "sqrt": 1}

func (p *parser) call(word string, depth int) (node, error) {
	want, known := functions[word]
	if !known {
		return node{}, p.fault("there is no function %q", word)
	}
	n := node{op: call, fn: word}
	for i := range want {
		arg, err := p.sum(depth + 1)
		if err != nil {
			return n, err
		}
		n.args = append(n.args, arg)
		if i < want-1 {
			if _, comma := p.take(","); !comma {
				return n, p.fault("%s takes %d values", word, want)
			}
		}
	}
	if _, closed := p.take(")"); !closed {
		return n, p.fault("%s takes %d values, and a )", word, want)
	}
	return n, p.check(&n)
}

// check finds the unit of a call.
func (p *parser) check(n *node) error {
	same := func(list []node) error {
		for _, a := range list {
			if a.unit != list[0].unit {
				return p.fault("%s of %s and %s: they need one unit", n.fn, list[0].unit, a.unit)
			}
		}
		return nil
	}
	n.unit = n.args[0].unit
	switch n.fn {
	case "min", "max", "clamp":
		return same(n.args)
	case "above":
		n.unit = None
		return same(n.args)
	case "share", "number":
		n.unit = None
	case "sqrt":
		if n.args[0].unit != None {
			return p.fault("sqrt takes a plain number")
		}
	case "if":
		n.unit = n.args[1].unit
		if n.args[0].unit != None {
			return p.fault("a condition is a plain number, such as above(x, y)")
		}
		return same(n.args[1:])
	}
	return nil
}
