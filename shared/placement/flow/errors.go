package flow

import (
	"errors"
	"fmt"
)

// What can be wrong, for errors.Is. The errors returned carry more: see InfeasibleError, UnboundedError and ParseError.
var (
	ErrInfeasible = errors.New("infeasible: no flow meets the supplies and bounds")
	ErrUnbounded  = errors.New("unbounded: a cycle of negative cost has no capacity limit")
	ErrOverflow   = errors.New("overflow: the numbers do not fit into 64 bits")
	ErrMalformed  = errors.New("malformed problem")
	ErrLimit      = errors.New("pivot limit reached")
)

// InfeasibleError says why no flow exists: the nodes in Cut have Short units more supply than the arcs that leave them
// can carry away (or Short units more demand than the arcs that enter can bring, if Demand). VerifyCut checks it.
type InfeasibleError struct {
	Short  int64 // units, > 0; Inf also stands for more
	Demand bool  // the nodes lack inflow, else they lack outflow
	Cut    []int // nodes, ascending
}

func (e *InfeasibleError) Error() string {
	what := "supply too much"
	if e.Demand {
		what = "demand too much"
	}
	if len(e.Cut) == 1 {
		return fmt.Sprintf("%v: node %d has %d units of %s", ErrInfeasible, e.Cut[0], e.Short, what)
	}
	return fmt.Sprintf("%v: %d nodes together have %d units of %s", ErrInfeasible, len(e.Cut), e.Short, what)
}

// Is makes errors.Is(err, ErrInfeasible) true.
func (e *InfeasibleError) Is(target error) bool { return target == ErrInfeasible }

// UnboundedError names the arcs of one cycle along which every further unit lowers the cost, without end.
type UnboundedError struct{ Cycle []ArcID }

func (e *UnboundedError) Error() string {
	return fmt.Sprintf("%v (%d arcs, first %d)", ErrUnbounded, len(e.Cycle), e.Cycle[0])
}

// Is makes errors.Is(err, ErrUnbounded) true.
func (e *UnboundedError) Is(target error) bool { return target == ErrUnbounded }

// ParseError is a fault in a DIMACS file. Line counts from 1; errors.Is finds ErrMalformed or ErrOverflow in it.
type ParseError struct {
	Line   int
	Detail string
	Err    error
}

func (e *ParseError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Detail) }

// Unwrap returns the class of the fault.
func (e *ParseError) Unwrap() error { return e.Err }
