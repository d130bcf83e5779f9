// Command flow measures the min-cost flow solver of shared/placement/flow on DIMACS files and proves each answer.
//
//	go run ./test/bench/flow [-runs 7] [-resolve 0.01] [-seed 1] [-against PROGRAM] [-json] FILE...
//
// A FILE may be gzipped. "ms" is the median time of building a solver and solving cold, without reading the file. With
// -resolve, that share of the arcs gets the cost of another arc before each run, and the same problem is solved cold
// and warm: from the last basis, in the memory of the last solution. With -against, PROGRAM (see lemon/README.md)
// solves each file between our runs, so that both run under the same load. The exit status is 1 if an answer is not
// proved or two answers differ.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/placement/flow"
	"github.com/littoral-project/littoral/test/bench/stats"
)

type settings struct {
	runs    int
	resolve float64
	seed    uint64
	against string
}

// result is one file's line. Times are medians in milliseconds.
type result struct {
	File    string   `json:"file"`
	Nodes   int      `json:"nodes"`
	Arcs    int      `json:"arcs"`
	Cost    int64    `json:"cost"`
	Pivots  int64    `json:"pivots"`
	MS      float64  `json:"ms"`
	Checked bool     `json:"checked"`
	Resolve *resolve `json:"resolve,omitempty"`
	Against *against `json:"against,omitempty"`
}

// resolve compares warm and cold after the same changes; Ratio is the median of the runs' own ratios.
type resolve struct {
	Changed    int     `json:"changed"` // arcs, in each run
	WarmMS     float64 `json:"warm_ms"`
	ColdMS     float64 `json:"cold_ms"`
	Ratio      float64 `json:"ratio"`
	WarmPivots int64   `json:"warm_pivots"` // of the last run
	ColdPivots int64   `json:"cold_pivots"`
	Equal      bool    `json:"equal"` // costs are equal, in every run
}

// against is the other program's time; Ratio is our time divided by it.
type against struct {
	BuildMS float64 `json:"build_ms"`
	RunMS   float64 `json:"run_ms"`
	Ratio   float64 `json:"ratio"` // our time including the build, to its run without
	Equal   bool    `json:"equal"`
}

func main() {
	var set settings
	flag.IntVar(&set.runs, "runs", 7, "runs to take the median of")
	flag.Float64Var(&set.resolve, "resolve", 0, "share of the arcs that change cost before a warm solve, 0 to 1")
	flag.Uint64Var(&set.seed, "seed", 1, "seed of these changes")
	flag.StringVar(&set.against, "against", "", "program to compare with, see lemon/README.md")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	if flag.NArg() == 0 || set.runs < 1 || set.resolve < 0 || set.resolve > 1 {
		flag.Usage()
		os.Exit(2)
	}
	err := stats.Files(flag.Args(), *asJSON, func(file string) (*result, error) { return measure(set, file) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (r *result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s nodes=%d arcs=%d cost=%d ms=%.2f pivots=%d checked=%t",
		r.File, r.Nodes, r.Arcs, r.Cost, r.MS, r.Pivots, r.Checked)
	if a := r.Against; a != nil {
		fmt.Fprintf(&b, " against_ms=%.2f (build %.2f) ratio=%.3f equal=%t", a.RunMS, a.BuildMS, a.Ratio, a.Equal)
	}
	if w := r.Resolve; w != nil {
		fmt.Fprintf(&b, " | changed=%d warm_ms=%.2f cold_ms=%.2f ratio=%.3f pivots=%d/%d equal=%t",
			w.Changed, w.WarmMS, w.ColdMS, w.Ratio, w.WarmPivots, w.ColdPivots, w.Equal)
	}
	return b.String()
}

func measure(set settings, file string) (*result, error) {
	p, err := read(file)
	if err != nil {
		return nil, err
	}
	r := &result{File: filepath.Base(file), Nodes: p.Nodes(), Arcs: p.Arcs()}
	var times stats.Sample
	var other rival
	for range set.runs {
		ms, sol, err := timed(flow.NewSolver(p).Solve)
		if err != nil {
			return nil, err
		}
		if err := sol.Verify(p); err != nil {
			return nil, err
		}
		times = append(times, ms)
		r.Cost, r.Pivots = sol.Cost, sol.Pivots
		if set.against != "" {
			if err := other.solve(set.against, file); err != nil {
				return nil, err
			}
		}
	}
	r.MS, r.Checked = times.Median(), true
	if set.against != "" {
		r.Against = &against{BuildMS: other.build.Median(), RunMS: other.run.Median(), Equal: other.cost == r.Cost}
		r.Against.Ratio = r.MS / r.Against.RunMS
		if !r.Against.Equal {
			return nil, fmt.Errorf("cost %d, the other program found %d", r.Cost, other.cost)
		}
	}
	if set.resolve > 0 {
		r.Resolve, err = solveAgain(set, p)
	}
	return r, err
}

// solveAgain changes costs and solves warm and cold, several times; the changes accumulate.
func solveAgain(set settings, p *flow.Problem) (*resolve, error) {
	random := rand.New(rand.NewPCG(set.seed, 0))
	r := &resolve{Changed: int(set.resolve * float64(p.Arcs())), Equal: true}
	s := flow.NewSolver(p)
	warm, err := s.Solve()
	if err != nil {
		return nil, err
	}
	again := func() (*flow.Solution, error) { return warm, s.SolveInto(warm) }
	var warms, colds, ratios stats.Sample
	for range set.runs {
		for range r.Changed {
			_, _, _, _, cost, _ := p.Arc(flow.ArcID(random.IntN(p.Arcs())))
			p.SetCost(flow.ArcID(random.IntN(p.Arcs())), cost)
		}
		warmMS, _, err := timed(again)
		if err != nil {
			return nil, err
		}
		coldMS, cold, err := timed(flow.NewSolver(p).Solve)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(warm.Verify(p), cold.Verify(p)); err != nil {
			return nil, err
		}
		if warm.Cost != cold.Cost {
			return nil, fmt.Errorf("warm cost %d, cold cost %d", warm.Cost, cold.Cost)
		}
		warms, colds, ratios = append(warms, warmMS), append(colds, coldMS), append(ratios, warmMS/coldMS)
		r.WarmPivots, r.ColdPivots = warm.Pivots, cold.Pivots
	}
	r.WarmMS, r.ColdMS, r.Ratio = warms.Median(), colds.Median(), ratios.Median()
	return r, nil
}

// rival collects the output of the other program: "cost C build MS run MS".
type rival struct {
	cost       int64
	build, run stats.Sample
}

func (o *rival) solve(program, file string) error {
	out, err := exec.Command(program, "-runs", "1", file).Output()
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	var build, run float64
	if _, err := fmt.Fscanf(bytes.NewReader(out), "cost %d build %g run %g", &o.cost, &build, &run); err != nil {
		return fmt.Errorf("%s said %s: %w", program, strconv.Quote(string(out)), err)
	}
	o.build, o.run = append(o.build, build), append(o.run, run)
	return nil
}

// timed calls solve and returns the milliseconds it took.
func timed(solve func() (*flow.Solution, error)) (float64, *flow.Solution, error) {
	begin := time.Now()
	sol, err := solve()
	return stats.Millis(time.Since(begin)), sol, err
}

// read opens a DIMACS file, gzipped or not.
func read(name string) (*flow.Problem, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var in io.Reader = bufio.NewReader(f)
	if magic, _ := in.(*bufio.Reader).Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if in, err = gzip.NewReader(in); err != nil {
			return nil, err
		}
	}
	return flow.ReadDIMACS(in)
}
