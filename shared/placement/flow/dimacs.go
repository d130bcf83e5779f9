package flow

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// maxLine is the longest line that ReadDIMACS takes, in bytes.
const maxLine = 64 << 10

// maxEmptyNodes is how many nodes a header may declare beyond those that later lines mention. It limits the memory that
// a short hostile file can ask for: 8 bytes each.
const maxEmptyNodes = 1 << 22

// ReadDIMACS reads a min-cost flow problem in DIMACS format:
//
//	c anything                            comment, on any line
//	p min NODES ARCS                      first, once
//	n NODE SUPPLY                         nodes count from 1 here, from 0 in the Problem
//	a FROM TO LOWER UPPER COST            ArcIDs follow the order of these lines
//
// An UPPER of the largest 64-bit number, or below zero under a LOWER of zero as some generators write, means Inf. The
// number of arcs must be the announced one. An error is a *ParseError, or what the reader returned.
func ReadDIMACS(r io.Reader) (*Problem, error) {
	d := &dimacs{}
	scan := bufio.NewScanner(r)
	scan.Buffer(make([]byte, 0, 4096), maxLine)
	for scan.Scan() {
		d.line++
		if err := d.read(scan.Bytes()); err != nil {
			return nil, err
		}
	}
	if err := scan.Err(); errors.Is(err, bufio.ErrTooLong) {
		d.line++
		return nil, d.fail("longer than %d bytes", maxLine)
	} else if err != nil {
		return nil, err
	}
	if d.problem == nil {
		return nil, d.fail("no line \"p min NODES ARCS\"")
	}
	if got := int64(d.problem.Arcs()); got != d.arcs {
		return nil, d.fail("%d arcs, announced were %d", got, d.arcs)
	}
	return d.problem, nil
}

type dimacs struct {
	problem *Problem
	arcs    int64 // declared
	line    int
}

func (d *dimacs) read(line []byte) error {
	kind, rest := field(line)
	var x [5]int64
	switch string(kind) {
	case "", "c":
		return nil
	case "p":
		if d.problem != nil {
			return d.fail("a second p line")
		}
		var what []byte
		if what, rest = field(rest); string(what) != "min" {
			return d.fail("problem %q, want min", clip(what))
		}
		if err := d.numbers(rest, x[:2]); err != nil {
			return err
		}
		if x[0] < 0 || x[0] > maxEmptyNodes || x[1] < 0 || x[1] > maxArcs {
			return d.fail("%d nodes and %d arcs, want 0 to %d and 0 to %d", x[0], x[1], maxEmptyNodes, maxArcs)
		}
		d.problem, d.arcs = NewProblem(int(x[0])), x[1]
		return nil
	case "n":
		return d.supply(rest, x[:2])
	case "a":
		return d.arc(rest, x[:5])
	}
	return d.fail("%q, want p, n, a or c", clip(kind))
}

func (d *dimacs) supply(rest []byte, x []int64) error {
	if err := d.numbers(rest, x); err != nil {
		return err
	}
	if err := d.node(x[0]); err != nil {
		return err
	}
	d.problem.SetSupply(int(x[0]-1), x[1])
	return nil
}

func (d *dimacs) arc(rest []byte, x []int64) error {
	if err := d.numbers(rest, x); err != nil {
		return err
	}
	if err := d.node(x[0]); err != nil {
		return err
	}
	if err := d.node(x[1]); err != nil {
		return err
	}
	if int64(d.problem.Arcs()) >= d.arcs {
		return d.fail("more arcs than the %d announced", d.arcs)
	}
	if x[3] < 0 && x[2] == 0 {
		x[3] = Inf
	}
	if x[2] > x[3] || x[2] == Inf {
		return d.fail("bounds %d to %d", x[2], x[3])
	}
	d.problem.AddArc(int(x[0]-1), int(x[1]-1), x[2], x[3], x[4])
	return nil
}

func (d *dimacs) node(v int64) error {
	switch {
	case d.problem == nil:
		return d.fail("before the p line")
	case v < 1 || v > int64(d.problem.Nodes()):
		return d.fail("node %d, want 1 to %d", v, d.problem.Nodes())
	}
	return nil
}

// numbers reads exactly len(x) integers.
func (d *dimacs) numbers(rest []byte, x []int64) error {
	var f []byte
	for i := range x {
		if f, rest = field(rest); len(f) == 0 {
			return d.fail("%d numbers, want %d", i, len(x))
		}
		var err error
		if x[i], err = parse(f); err != nil {
			return d.number(f, err)
		}
	}
	if f, _ = field(rest); len(f) != 0 {
		return d.fail("%q after the last number", clip(f))
	}
	return nil
}

func (d *dimacs) number(f []byte, err error) error {
	if errors.Is(err, strconv.ErrRange) {
		return &ParseError{Line: d.line, Detail: fmt.Sprintf("%s does not fit into 64 bits", clip(f)), Err: ErrOverflow}
	}
	return d.fail("%q is not a whole number", clip(f))
}

func (d *dimacs) fail(format string, args ...any) error {
	return &ParseError{Line: d.line, Detail: fmt.Sprintf(format, args...), Err: ErrMalformed}
}

// field returns the first word of the line and what follows it.
func field(line []byte) (word, rest []byte) {
	line = bytes.TrimLeft(line, " \t\r")
	if i := bytes.IndexAny(line, " \t\r"); i >= 0 {
		return line[:i], line[i:]
	}
	return line, nil
}

// clip truncates a quotation in a message.
func clip(b []byte) []byte { return b[:min(len(b), 32)] }

// parse reads a decimal integer; short ones without an allocation.
func parse(b []byte) (int64, error) {
	digits := b
	if len(b) > 1 && (b[0] == '-' || b[0] == '+') {
		digits = b[1:]
	}
	if len(digits) > 18 {
		return strconv.ParseInt(string(b), 10, 64)
	}
	var x int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, strconv.ErrSyntax
		}
		x = 10*x + int64(c-'0')
	}
	if b[0] == '-' {
		x = -x
	}
	return x, nil
}
