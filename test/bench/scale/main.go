// Command scale measures shared/placement on large problems, made from a fixed seed, and checks each plan with code of
// its own:
//
//	go run ./test/bench/scale [-runs 5] [-only a,b,c,d] [-json]
//
//	a  900 components on 5 000 nodes in 25 clusters, with spreads over clusters and chains of affinities
//	b  one application of 20 components on 10 to 50 000 nodes
//	c  a storm: 10 000 equal-sized components at once over 12 500 nodes, and again after one node in a hundred is lost
//	d  memory per node and per component
//
// "ms" is the median of the runs, "least_ms" the quickest and "cpu_ms" the median processor time, for machines that do
// other things as well. The exit status is 1 if a plan breaks a rule.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/littoral-project/littoral/shared/placement"
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
	// Of case d: what the problem and its solution allocate beyond a smaller one, for each node or component more.
	BytesPerNode      int64 `json:"bytes_per_node,omitempty"`
	BytesPerComponent int64 `json:"bytes_per_component,omitempty"`
}

func (r *result) String() string {
	if r.Case == "d" {
		return fmt.Sprintf("d bytes_per_node=%d bytes_per_component=%d", r.BytesPerNode, r.BytesPerComponent)
	}
	return fmt.Sprintf("%s components=%d nodes=%d placed=%d objective=%.6g bound=%.6g gap=%.2f%% exact=%t "+
		"violations=%d ms=%.1f least_ms=%.1f cpu_ms=%.1f work=%d",
		r.Case, r.Components, r.Nodes, r.Placed, r.Objective, r.Bound,
		100*r.Gap, r.Exact,
		r.Violations, r.MS, r.LeastMS, r.CPUMS, r.Work)
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
		for _, nodes := range []int{10, 100, 1_000, 10_000, 50_000} {
			if err := show(measure("b", application(20, nodes), runs)); err != nil {
				return err
			}
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
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		if err := out.Encode(results); err != nil {
			return err
		}
	}
	if broken > 0 {
		return fmt.Errorf("%d violations", broken)
	}
	return nil
}

func measure(name string, p placement.Problem, runs int) (*result, error) {
	return timed(name, p, runs, func() error { return nil }, func() (placement.Plan, error) { return placement.Place(p) })
}

// timed solves some times over, after what prepare does untimed, and checks each plan.
func timed(name string, p placement.Problem, runs int, prepare func() error, solve func() (placement.Plan, error)) (
	*result, error,
) {
	r := &result{Case: name, Components: len(p.Components), Nodes: len(p.Nodes)}
	var times, cpu []float64
	for range runs {
		if err := prepare(); err != nil {
			return nil, err
		}
		runtime.GC() // what the run before left
		begin, used := time.Now(), processor()
		plan, err := solve()
		if err != nil {
			return nil, err
		}
		times = append(times, float64(time.Since(begin).Microseconds())/1e3)
		cpu = append(cpu, float64((processor()-used).Microseconds())/1e3)
		r.Placed, r.Objective, r.Bound, r.Gap = plan.Placed, plan.Objective, plan.Bound, plan.Gap
		r.Exact, r.Work = plan.Exact, plan.Work
		r.Violations += violations(p, plan)
	}
	r.MS, r.CPUMS, r.LeastMS = median(times), median(cpu), slices.Min(times)
	return r, nil
}

// median sorts a and returns the middle.
func median(a []float64) float64 {
	slices.Sort(a)
	return (a[(len(a)-1)/2] + a[len(a)/2]) / 2
}

// processor returns the processor time this program has used, collecting garbage included.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// storm solves case c at once, and again after one node in a hundred is lost: anew, and from where the first ended.
// Both must be worth the same.
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

// memory compares what solving allocates at two sizes.
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
