// Command place measures shared/placement on joint instances and checks each answer independently.
//
//	go run ./test/bench/place [-budget N] [-runs 7] [-json] FILE...
//
// A FILE is JSON: components with cpu and memory; nodes with a cluster, cpu and memory; a score for each combination of
// them; and pairs that earn a weight if they are placed in the same cluster. Every component must be placed. The output
// has the objective, the bound and the gap that the plan proves, and the median time of a plan, without reading the
// file. The exit status is 1 if a plan exceeds a capacity, leaves a component out or miscounts, if an objective is
// above the proven optimum, or if a bound is below it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/test/bench/stats"
)

// optima are proven by CBC 2.10.8, by file name. The optimum of other files is unknown.
var optima = map[string]float64{
	"joint_10x50x5_s1.json": 1172, "joint_20x100x10_s1.json": 2433, "joint_40x200x20_s1.json": 4827,
}

// instance is the content of a file.
type instance struct {
	Components []struct {
		ID     string `json:"id"`
		CPU    int64  `json:"cpu"`
		Memory int64  `json:"memory"`
	} `json:"components"`
	Nodes []struct {
		ID      string `json:"id"`
		Cluster string `json:"cluster"`
		CPU     int64  `json:"cpu"`
		Memory  int64  `json:"memory"`
	} `json:"nodes"`
	Score    [][]float64 `json:"score"`
	Affinity []struct {
		A      string  `json:"a"`
		B      string  `json:"b"`
		Weight float64 `json:"weight"`
		Scope  string  `json:"scope"`
	} `json:"affinity"`
}

// result is one file's line. The time is a median in milliseconds.
type result struct {
	File       string   `json:"file"`
	Components int      `json:"components"`
	Nodes      int      `json:"nodes"`
	Objective  float64  `json:"objective"`
	Bound      float64  `json:"bound"`
	Gap        float64  `json:"gap"`
	Exact      bool     `json:"exact"`
	MS         float64  `json:"ms"`
	CPUMS      float64  `json:"cpu_ms"` // processor time, which other programs affect less
	Work       int64    `json:"work"`
	Checked    bool     `json:"checked"`
	Optimum    *float64 `json:"optimum,omitempty"`
	Short      float64  `json:"short,omitempty"` // of the optimum, as a share of it
}

func main() {
	budget := flag.Int64("budget", 0, "work units of a plan, 0 for the package's default")
	runs := flag.Int("runs", 7, "runs to take the median of")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	if flag.NArg() == 0 || *runs < 1 || *budget < 0 {
		flag.Usage()
		os.Exit(2)
	}
	err := stats.Files(flag.Args(), *asJSON, func(file string) (*result, error) { return measure(file, *budget, *runs) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (r *result) String() string {
	out := fmt.Sprintf("%s components=%d nodes=%d objective=%.6g bound=%.6g gap=%.2f%% exact=%t "+
		"ms=%.1f cpu_ms=%.1f work=%d checked=%t", r.File, r.Components, r.Nodes, r.Objective, r.Bound,
		100*r.Gap, r.Exact, r.MS, r.CPUMS, r.Work, r.Checked)
	if r.Optimum != nil {
		out += fmt.Sprintf(" optimum=%.6g short=%.2f%%", *r.Optimum, 100*r.Short)
	}
	return out
}

func measure(file string, budget int64, runs int) (*result, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var in instance
	if err := in.read(data); err != nil {
		return nil, err
	}
	p := in.problem()
	p.Budget = budget
	r := &result{File: filepath.Base(file), Components: len(p.Components), Nodes: len(p.Nodes)}
	plan, ms, cpu, err := stats.Repeat(runs, func() (placement.Plan, error) { return placement.Place(p) }, in.check)
	if err != nil {
		return nil, err
	}
	r.Objective, r.Bound, r.Gap, r.Exact, r.Work = plan.Objective, plan.Bound, plan.Gap, plan.Exact, plan.Work
	r.MS, r.CPUMS, r.Checked = ms, cpu, true
	if best, known := optima[r.File]; known {
		r.Optimum, r.Short = &best, (best-r.Objective)/best
		if r.Objective > best+1e-6 || r.Bound < best-1e-6 {
			return nil, fmt.Errorf("objective %v and bound %v do not enclose the optimum %v", r.Objective, r.Bound, best)
		}
	}
	return r, nil
}

// read parses a file and refuses scores that do not match the lists.
func (in *instance) read(data []byte) error {
	if err := json.Unmarshal(data, in); err != nil {
		return err
	}
	if len(in.Score) != len(in.Components) {
		return fmt.Errorf("%d rows of scores for %d components", len(in.Score), len(in.Components))
	}
	return nil
}

// problem converts the instance for the package: cores to millicores, memory in GiB.
func (in *instance) problem() placement.Problem {
	p := placement.Problem{Scores: in.Score}
	for _, c := range in.Components {
		p.Components = append(p.Components, placement.Component{ID: c.ID, CPU: 1000 * c.CPU, Memory: c.Memory << 30})
	}
	for _, n := range in.Nodes {
		p.Nodes = append(p.Nodes, placement.Node{
			Orchestrator: "ocm", Cluster: n.Cluster, Name: n.ID, CPU: 1000 * n.CPU, Memory: n.Memory << 30,
		})
	}
	for _, a := range in.Affinity {
		p.Affinities = append(p.Affinities, placement.Affinity{A: a.A, B: a.B, Weight: a.Weight, Scope: a.Scope})
	}
	return p
}

// check recomputes the plan from the file's own numbers.
func (in *instance) check(plan placement.Plan) error {
	node, at := map[string]int{}, map[string]int{}
	for k, n := range in.Nodes {
		node[n.ID] = k
	}
	cpu, memory, worth := make([]int64, len(in.Nodes)), make([]int64, len(in.Nodes)), 0.0
	for i, c := range in.Components {
		a := plan.Assignments[i]
		k, known := node[a.Target.Node]
		if a.Component != c.ID || !a.Placed || !known || in.Nodes[k].Cluster != a.Target.Cluster {
			return fmt.Errorf("%s has no place", c.ID)
		}
		at[c.ID] = k
		cpu[k] += c.CPU
		memory[k] += c.Memory
		worth += in.Score[i][k]
	}
	for k, n := range in.Nodes {
		if cpu[k] > n.CPU || memory[k] > n.Memory {
			return fmt.Errorf("%s holds %d cores of %d and %d of memory of %d", n.ID, cpu[k], n.CPU, memory[k], n.Memory)
		}
	}
	for _, a := range in.Affinity {
		if in.Nodes[at[a.A]].Cluster == in.Nodes[at[a.B]].Cluster {
			worth += a.Weight
		}
	}
	if math.Abs(worth-plan.Objective) > 1e-6 {
		return fmt.Errorf("the plan is worth %v and claims %v", worth, plan.Objective)
	}
	return nil
}
