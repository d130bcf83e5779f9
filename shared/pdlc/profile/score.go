package profile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Score is that of a node. Without one, Why says what is missing.
type Score struct {
	Value *float64
	Why   string
}

// Score computes the formula for all nodes. A node of which a metric that its score needs is not known has no score, and neither
// has one whose score is no number.
func (f *Formula) Score(nodes []Values) []Score {
	e := evaluation{nodes: nodes, all: map[string]float64{}}
	out := make([]Score, len(nodes))
	for i := range nodes {
		v, err := e.at(&f.root, i)
		if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			err = unknown("it is divided by zero")
		}
		if err != nil {
			out[i].Why = err.Error()
			continue
		}
		out[i].Value = &v
	}
	return out
}

type unknown string

func (u unknown) Error() string { return string(u) }

type evaluation struct {
	nodes []Values
	all   map[string]float64 // what looks at all nodes, by function and argument
}

func (e *evaluation) at(n *node, i int) (float64, error) {
	switch n.op {
	case number:
		return n.v, nil
	case name:
		v, known := e.nodes[i][Metrics[n.ref].Name]
		if !known || math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, unknown(Metrics[n.ref].Name + " is not known")
		}
		return v, nil
	case call:
		return e.call(n, i)
	}
	left, err := e.at(&n.args[0], i)
	if err != nil || n.op == negate {
		return -left, err
	}
	right, err := e.at(&n.args[1], i)
	if err != nil {
		return 0, err
	}
	switch n.op {
	case add:
		return left + right, nil
	case subtract:
		return left - right, nil
	case multiply:
		return left * right, nil
	}
	return left / right, nil
}

func (e *evaluation) call(n *node, i int) (float64, error) {
	if n.fn == "if" { // only the branch that is taken has to be known
		v, err := e.at(&n.args[0], i)
		if err != nil {
			return 0, err
		}
		if v > 0 {
			return e.at(&n.args[1], i)
		}
		return e.at(&n.args[2], i)
	}
	switch n.fn {
	case "greatest", "least", "mean":
		return e.over(n.fn, &n.args[0])
	}
	args := make([]float64, len(n.args))
	for k := range n.args {
		v, err := e.at(&n.args[k], i)
		if err != nil {
			return 0, err
		}
		args[k] = v
	}
	switch n.fn {
	case "min":
		return min(args[0], args[1]), nil
	case "max":
		return max(args[0], args[1]), nil
	case "clamp":
		return min(max(args[0], args[1]), args[2]), nil
	case "above":
		return float64(max(0, cmp.Compare(args[0], args[1]))), nil
	case "sqrt":
		return math.Sqrt(args[0]), nil
	case "share":
		most, err := e.over("greatest", &n.args[0])
		if err != nil || most <= 0 {
			return 0, err // where nobody has any, nobody has a share
		}
		return args[0] / most, nil
	}
	return args[0], nil // number
}

// over is the greatest, least or mean of a part over all nodes of which it is known.
func (e *evaluation) over(fn string, n *node) (float64, error) {
	key := fn + fmt.Sprintf("%p", n)
	if v, known := e.all[key]; known {
		return v, nil
	}
	var values []float64
	for i := range e.nodes {
		if v, err := e.at(n, i); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return 0, unknown("it is not known of any node")
	}
	v := 0.0
	switch fn {
	case "greatest":
		v = slices.Max(values)
	case "least":
		v = slices.Min(values)
	default:
		for _, one := range values {
			v += one / float64(len(values))
		}
	}
	e.all[key] = v
	return v, nil
}

// Profile is a named formula.
type Profile struct {
	Name    string `json:"name"`
	Formula string `json:"formula"`
	About   string `json:"about,omitempty"`
	Builtin bool   `json:"builtin,omitempty"`
}

// Builtin are the profiles that are always there. printed takes greenness and resilience as CODECO's deliverable D11 prints them,
// whose faults are known: the bandwidth decides alone, and resilience grows with failures.
func Builtin(printed bool) []Profile {
	list := []Profile{
		{Name: "greenness", Formula: "(1 - clamp(share(energy), 0.01, 1)) * share(ebw)", About: "little energy, much bandwidth left"},
		{Name: "resilience", Formula: "if(above(degree, 0), 1 / (1 + (node_failure + link_failure) / degree), 0)", About: "few failures, many links"},
		{Name: "performance", Formula: "1 - max(cpu, mem)", About: "idle cpu and memory, whichever is scarcer"},
		{Name: "foresight", Formula: "1 - max(max(cpu, cpu_forecast), mem)", About: "as performance, with the cpu that is foreseen"},
	}
	if printed {
		list[0].Formula = "(1 - number(energy)) / number(energy) * number(ebw)"
		list[1].Formula = "(node_failure + link_failure) * (1 / degree) * link_failure"
	}
	for i := range list {
		list[i].Builtin = true
	}
	return list
}

// Share is a score as a share of the best, 0 to 1, for placement: nothing for a score below zero or none.
func Share(scores []Score) []float64 {
	most := 0.0
	for _, s := range scores {
		if s.Value != nil {
			most = max(most, *s.Value)
		}
	}
	out := make([]float64, len(scores))
	for i, s := range scores {
		if s.Value != nil && most > 0 {
			out[i] = max(0, *s.Value) / most
		}
	}
	return out
}

// Known lists the metrics for a sentence.
func Known() string {
	names := make([]string, len(Metrics))
	for i := range Metrics {
		names[i] = Metrics[i].Name
	}
	return strings.Join(names, ", ")
}
