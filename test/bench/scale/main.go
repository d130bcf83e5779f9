// Command scale measures shared/placement on large problems, made from a fixed seed, and checks each plan
// independently:
//
//	go run ./test/bench/scale [-runs 5] [-only a,b,c,d] [-json]
//
//	a  900 components on 5 000 nodes in 25 clusters, with spreads over clusters and chains of affinities
//	b  one application of 20 components on 10 to 50 000 nodes, with its growth from size to size
//	c  a storm: 10 000 equal-sized components at once over 12 500 nodes, and again after one node in a hundred is lost
//	d  memory per node and per component
//
// "ms" is the median of the runs, "least_ms" the fastest and "cpu_ms" the median processor time, for machines that do
// other work as well. "growth" is the factor by which time, processor time and work have grown since the former size,
// each divided by the factor of the nodes: 1 is linear, less is better. Every run solves all sizes in turn, and growth
// in time is the median over the runs. The exit status is 1 if a plan breaks a rule.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/test/bench/stats"
)

// result is one line. Times are in milliseconds.
type result struct {
	Case       string  `json:"case"`
	Components int     `json:"components"`
	Nodes      int     `json:"nodes"`
	Placed     int     `json:"placed"`
	Objective  float64 `json:"objective"`
	Bound      float64 `json:"bound"`
	Gap        float64 `json:"gap"`
	Exact      bool    `json:"exact"`
	Violations int     `json:"violations"`
	MS         float64 `json:"ms"`
	LeastMS    float64 `json:"least_ms"`
	CPUMS      float64 `json:"cpu_ms"`
	Work       int64   `json:"work"`
	Growth     *growth `json:"growth,omitempty"`
	// Of case d: additional allocations compared with a smaller problem, per additional node or component.
	BytesPerNode      int64 `json:"bytes_per_node,omitempty"`
	BytesPerComponent int64 `json:"bytes_per_component,omitempty"`
}

// growth is the additional cost of a larger problem, divided by the growth in nodes.
type growth struct {
	MS    float64 `json:"ms"`
	CPUMS float64 `json:"cpu_ms"`
	Work  float64 `json:"work"`
}

func (r *result) String() string {
	if r.Case == "d" {
		return fmt.Sprintf("d bytes_per_node=%d bytes_per_component=%d", r.BytesPerNode, r.BytesPerComponent)
	}
	var grown string
	if g := r.Growth; g != nil {
		grown = fmt.Sprintf(" growth ms=%.2f cpu_ms=%.2f work=%.3f", g.MS, g.CPUMS, g.Work)
	}
	return fmt.Sprintf("%s components=%d nodes=%d placed=%d objective=%.6g bound=%.6g gap=%.2f%% exact=%t "+
		"violations=%d ms=%.2f least_ms=%.2f cpu_ms=%.2f work=%d%s",
		r.Case, r.Components, r.Nodes, r.Placed, r.Objective, r.Bound,
		100*r.Gap, r.Exact,
		r.Violations, r.MS, r.LeastMS, r.CPUMS, r.Work, grown)
}

func main() {
	runs := flag.Int("runs", 5, "runs to take the median of")
	only := flag.String("only", "a,b,c,d", "cases to run")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	if flag.NArg() > 0 || *runs < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(strings.Split(*only, ","), *runs, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(only []string, runs int, asJSON bool) error {
	var results []*result
	broken := 0
	show := func(r *result, err error) error {
		if err != nil {
			return err
		}
		results = append(results, r)
		broken += r.Violations
		if !asJSON {
			fmt.Println(r)
		}
		return nil
	}
	if slices.Contains(only, "a") {
		if err := show(measure("a", spreadAndChained(), runs)); err != nil {
			return err
		}
	}
	if slices.Contains(only, "b") {
		grown, err := grow(runs)
		for _, r := range grown {
			_ = show(r, nil)
		}
		if err != nil {
			return err
		}
	}
	if slices.Contains(only, "c") {
		if err := storm(runs, show); err != nil {
			return err
		}
	}
	if slices.Contains(only, "d") {
		if err := show(memory()); err != nil {
			return err
		}
	}
	if asJSON {
		if err := stats.JSON(results); err != nil {
			return err
		}
	}
	if broken > 0 {
		return fmt.Errorf("%d violations", broken)
	}
	return nil
}

// sizes are the nodes of case b.
var sizes = []int{10, 100, 1_000, 10_000, 50_000}

// grow solves case b, all sizes in every run.
func grow(runs int) ([]*result, error) {
	all := make([]*series, len(sizes))
	for i, nodes := range sizes {
		all[i] = newSeries("b", application(20, nodes))
	}
	for range runs {
		runtime.GC() // once: small sizes leave little garbage, and so the runtime keeps the memory of the large ones
		for _, x := range all {
			if err := x.solve(func() (placement.Plan, error) { return placement.Place(x.problem) }); err != nil {
				return nil, err
			}
		}
	}
	results := make([]*result, len(all))
	for i, x := range all {
		if i > 0 {
			x.result.Growth = x.since(all[i-1])
		}
		results[i] = x.computeTimes()
	}
	return results, nil
}

func measure(name string, p placement.Problem, runs int) (*result, error) {
	return timed(name, p, runs, func() error { return nil }, func() (placement.Plan, error) { return placement.Place(p) })
}

// timed solves several times, each after an untimed prepare, and checks each plan.
func timed(name string, p placement.Problem, runs int, prepare func() error, solve func() (placement.Plan, error)) (
	*result, error,
) {
	x := newSeries(name, p)
	for range runs {
		if err := prepare(); err != nil {
			return nil, err
		}
		runtime.GC() // from the former run
		if err := x.solve(solve); err != nil {
			return nil, err
		}
	}
	return x.computeTimes(), nil
}

// series is one problem solved several times.
type series struct {
	problem    placement.Problem
	result     *result
	times, cpu stats.Sample // of each run
}

func newSeries(name string, p placement.Problem) *series {
	return &series{problem: p, result: &result{Case: name, Components: len(p.Components), Nodes: len(p.Nodes)}}
}

// solve makes one run.
func (x *series) solve(solve func() (placement.Plan, error)) error {
	begin, used := time.Now(), stats.Processor()
	plan, err := solve()
	if err != nil {
		return err
	}
	x.times.Add(time.Since(begin))
	x.cpu.Add(stats.Processor() - used)
	r := x.result
	r.Placed, r.Objective, r.Bound, r.Gap = plan.Placed, plan.Objective, plan.Bound, plan.Gap
	r.Exact, r.Work = plan.Exact, plan.Work
	r.Violations += violations(x.problem, plan)
	return nil
}

// since compares with a smaller problem that was solved as often, run by run.
func (x *series) since(small *series) *growth {
	nodes := float64(x.result.Nodes) / float64(small.result.Nodes)
	median := func(large, small []float64) float64 {
		ratios := make(stats.Sample, len(large))
		for i := range large {
			ratios[i] = large[i] / max(small[i], 1e-3) / nodes // times too short for the clock count as 1 µs
		}
		return ratios.Median()
	}
	return &growth{
		MS: median(x.times, small.times), CPUMS: median(x.cpu, small.cpu),
		Work: float64(x.result.Work) / float64(small.result.Work) / nodes,
	}
}

// computeTimes computes the times.
func (x *series) computeTimes() *result {
	x.result.MS, x.result.CPUMS, x.result.LeastMS = x.times.Median(), x.cpu.Median(), slices.Min(x.times)
	return x.result
}

// storm solves case c at once, and again after one node in a hundred is lost: from scratch, and from the first result.
// Both results must have the same value.
func storm(runs int, show func(*result, error) error) error {
	p := displaced()
	if err := show(measure("c", p, runs)); err != nil {
		return err
	}
	q := p
	q.Nodes = slices.Clone(p.Nodes)
	lose(&q)
	cold, err := measure("c after a loss, cold", q, runs)
	if err := show(cold, err); err != nil {
		return err
	}
	var solver placement.Solver
	warm, err := timed("c after a loss, warm", q, runs, func() error {
		_, err := solver.Place(p)
		return err
	}, func() (placement.Plan, error) {
		return solver.Place(q)
	})
	if err := show(warm, err); err != nil {
		return err
	}
	if math.Abs(warm.Objective-cold.Objective) > 1e-6*cold.Objective {
		return fmt.Errorf("warm %v, cold %v", warm.Objective, cold.Objective)
	}
	return nil
}

// memory compares the allocations at two sizes.
func memory() (*result, error) {
	spent := func(components, nodes int) (int64, error) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		p := application(components, nodes)
		_, err := placement.Place(p)
		runtime.ReadMemStats(&after)
		return int64(after.TotalAlloc - before.TotalAlloc), err
	}
	var bytes [3]int64
	for i, size := range [][2]int{{20, 5_000}, {20, 10_000}, {40, 5_000}} {
		var err error
		if bytes[i], err = spent(size[0], size[1]); err != nil {
			return nil, err
		}
	}
	return &result{
		Case: "d", BytesPerNode: (bytes[1] - bytes[0]) / 5_000, BytesPerComponent: (bytes[2] - bytes[0]) / 20,
	}, nil
}
