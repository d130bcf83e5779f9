package flow

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestReadDIMACS_good(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/machines.dimacs")
	require.NoError(t, err)
	for name, text := range map[string]string{
		"as it is":        string(data),
		"DOS line ends":   strings.ReplaceAll(string(data), "\n", "\r\n"),
		"tabs and spaces": strings.ReplaceAll(string(data), " ", " \t "),
		"no last newline": strings.TrimSpace(string(data)),
	} {
		p, err := ReadDIMACS(strings.NewReader(text))
		require.NoError(t, err, name)
		require.Equal(t, 6, p.Nodes())
		require.Equal(t, 8, p.Arcs())
		sol, err := NewSolver(p).Solve()
		require.NoError(t, err)
		require.NoError(t, sol.Verify(p))
		require.EqualValues(t, 6, sol.Cost)
	}
}

func TestReadDIMACS_noLimit(t *testing.T) {
	t.Parallel()
	p, err := ReadDIMACS(strings.NewReader("p min 2 2\na 1 2 0 -1 3\na 1 2 0 9223372036854775807 3"))
	require.NoError(t, err)
	for id := range p.MaxArc() {
		_, _, _, upper, _, _ := p.Arc(id)
		require.EqualValues(t, Inf, upper)
	}
}

func TestReadDIMACS_bad(t *testing.T) {
	t.Parallel()
	long := "p min 1 0\nc " + strings.Repeat("x", maxLine)
	tests := map[string]struct {
		text string
		line int
		err  error
	}{
		"nothing":                 {"", 0, ErrMalformed},
		"only comments":           {"c a\nc b\n", 2, ErrMalformed},
		"maximum flow problem":    {"p max 2 1\n", 1, ErrMalformed},
		"header of words":         {"p min two one\n", 1, ErrMalformed},
		"header too short":        {"p min 2\n", 1, ErrMalformed},
		"header too long":         {"p min 2 1 1\n", 1, ErrMalformed},
		"header twice":            {"p min 2 1\np min 2 1\n", 2, ErrMalformed},
		"negative nodes":          {"p min -2 1\n", 1, ErrMalformed},
		"huge nodes":              {"p min 999999999999 1\n", 1, ErrMalformed},
		"huge arcs":               {"p min 2 999999999999\n", 1, ErrMalformed},
		"node before header":      {"n 1 1\np min 2 0\n", 1, ErrMalformed},
		"arc before header":       {"c\na 1 2 0 1 1\n", 2, ErrMalformed},
		"node 0":                  {"p min 2 0\nn 0 1\n", 2, ErrMalformed},
		"node too large":          {"p min 2 0\nn 3 1\n", 2, ErrMalformed},
		"arc end too large":       {"p min 2 1\na 1 3 0 1 1\n", 2, ErrMalformed},
		"arc too short":           {"p min 2 1\na 1 2 0 1\n", 2, ErrMalformed},
		"arc too long":            {"p min 2 1\na 1 2 0 1 1 1\n", 2, ErrMalformed},
		"fraction":                {"p min 2 1\na 1 2 0 1 1.5\n", 2, ErrMalformed},
		"sign alone":              {"p min 2 1\na 1 2 0 1 -\n", 2, ErrMalformed},
		"bounds wrong way":        {"p min 2 1\na 1 2 4 3 1\n", 2, ErrMalformed},
		"lower bound infinite":    {"p min 2 1\na 1 2 9223372036854775807 9223372036854775807 1\n", 2, ErrMalformed},
		"more than 64 bits":       {"p min 2 1\na 1 2 0 9223372036854775808 1\n", 2, ErrOverflow},
		"unknown line":            {"p min 2 0\nx 1\n", 2, ErrMalformed},
		"fewer arcs than told":    {"p min 2 2\na 1 2 0 1 1\n", 2, ErrMalformed},
		"more arcs than told":     {"p min 2 0\na 1 2 0 1 1\n", 2, ErrMalformed},
		"line without end":        {long, 2, ErrMalformed},
		"bytes that are not text": {"p min 1 0\n\xff\xfe\n", 2, ErrMalformed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ReadDIMACS(strings.NewReader(test.text))
			require.ErrorIs(t, err, test.err)
			var where *ParseError
			require.ErrorAs(t, err, &where)
			require.Equal(t, test.line, where.Line)
			require.Less(t, len(err.Error()), 200)
		})
	}
	broken := errors.New("disk on fire")
	_, err := ReadDIMACS(iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
}

func FuzzReadDIMACS(f *testing.F) {
	data, err := os.ReadFile("testdata/machines.dimacs")
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte("p min 2 1\na 1 2 0 -1 -9223372036854775808\n"))
	f.Add([]byte("p min 4194304 1073741824\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ReadDIMACS(bytes.NewReader(data))
		if err != nil {
			var where *ParseError
			require.ErrorAs(t, err, &where)
			return
		}
		require.NoError(t, p.Err())
		if p.Nodes() > 1000 {
			return
		}
		s := NewSolver(p)
		if sol, err := s.Solve(); !errors.Is(err, ErrOverflow) {
			prove(t, p, false, sol, err)
		}
	})
}

func ExampleSolver() {
	p := NewProblem(4) // tasks 0 and 1, machine 2, sink 3
	p.SetSupply(0, 1)
	p.SetSupply(1, 1)
	p.SetSupply(3, -2)
	p.AddArc(0, 2, 0, 1, 5)
	p.AddArc(1, 2, 0, 1, 3)
	p.AddArc(2, 3, 0, 1, 0) // the machine has room for one
	s := NewSolver(p)
	_, err := s.Solve()
	fmt.Println(err)

	s.Partial = true
	sol, err := s.Solve()
	fmt.Println(sol.Sent, sol.Cost, sol.Unmet(0), err, sol.Verify(p))

	cloud := p.AddArc(0, 3, 0, 1, 20)
	sol, err = s.Solve()
	fmt.Println(sol.Sent, sol.Cost, sol.Flow(cloud), err)
	// Output:
	// infeasible: no flow meets the supplies and bounds: 3 nodes together have 1 units of supply too much
	// 1 3 1 <nil> <nil>
	// 2 23 1 <nil>
}
