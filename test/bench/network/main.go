// Command network measures the joint placement of components and channels and checks each answer independently.
//
//	go run ./test/bench/network [-budget N] [-runs 5] [-degrade] [-json] FILE...
//
// Instead of a FILE, FAMILY:COMPONENTS:SEED is an instance that is made on the spot: its clusters are joined as a ring, a tree or a
// geometric graph. With -degrade, the medium that carries most loses two fifths of what it carries afterwards, and the time to plan
// anew what runs is compared with that of the first plan.
//
// A FILE is JSON: components with cpu and memory; nodes in clusters; a score for each combination of them; the local
// network of each cluster with bandwidth and latency; media; paths between clusters over media; and channels between
// components with bandwidth and the highest latency. Every component must be placed. The exit status is 1 if a plan
// exceeds a capacity, a local network, a medium or a latency, leaves a component out or miscounts, if an objective is
// above the proven optimum, or if a bound is below what a plan is known to reach.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/test/bench/stats"
)

// known has what CBC 2.10 found: the best plan, and the most that any plan can be worth.
var known = map[string]struct{ best, most float64 }{
	"net_8x20x4_10_s1.json": {784, 784}, "net_20x100x10_20_s1.json": {1889, 1889},
	"net_40x200x20_60_s1.json": {4006, 4006}, "net_40x200x20_90_s3.json": {3517, 3770.6},
}

// instance is the content of a file. Latency is in microseconds, bandwidth in Mbit/s, cpu in millicores, memory in MiB.
type instance struct {
	Components []component
	Nodes      []node
	Score      [][]float64
	LAN        []lan
	Media      []medium
	Paths      []path
	Channels   []channel
}

type (
	component struct{ CPU, Memory int64 }
	node      struct {
		Cluster     int
		CPU, Memory int64
	}
	lan    struct{ Bandwidth, Latency int64 }
	medium struct{ Bandwidth int64 }
	path   struct {
		From, To int
		Media    []int
		Latency  int64
	}
	channel struct {
		From, To           int
		Bandwidth, Latency int64
	}
)

// result is one file's line. The time is a median in milliseconds.
type result struct {
	File      string   `json:"file"`
	Objective float64  `json:"objective"`
	Bound     float64  `json:"bound"`
	Gap       float64  `json:"gap"`
	Exact     bool     `json:"exact"`
	MS        float64  `json:"ms"`
	CPUMS     float64  `json:"cpu_ms"`
	Work      int64    `json:"work"`
	Checked   bool     `json:"checked"`
	Best      *float64 `json:"best_known,omitempty"`
	Short     float64  `json:"short,omitempty"` // of the best known, as a share of it
	Again     *again   `json:"again,omitempty"`
}

// again is a second plan, after a medium has become narrower.
type again struct {
	MS    float64 `json:"ms"`
	Share float64 `json:"share"` // of the time of the first plan, in cpu
	Work  float64 `json:"work"`  // as a share of that of the first plan
	Moved int     `json:"moved"`
	Gap   float64 `json:"gap"`
}

func (r *result) String() string {
	out := fmt.Sprintf("%s objective=%.6g bound=%.6g gap=%.2f%% exact=%t ms=%.1f cpu_ms=%.1f work=%d checked=%t", r.File,
		r.Objective, r.Bound, 100*r.Gap, r.Exact, r.MS, r.CPUMS, r.Work, r.Checked)
	if r.Best != nil {
		out += fmt.Sprintf(" best_known=%.6g short=%.2f%%", *r.Best, 100*r.Short)
	}
	if r.Again != nil {
		out += fmt.Sprintf(" again_ms=%.1f share=%.1f%% work=%.1f%% moved=%d again_gap=%.2f%%", r.Again.MS, 100*r.Again.Share, 100*r.Again.Work, r.Again.Moved, 100*r.Again.Gap)
	}
	return out
}

func main() {
	budget := flag.Int64("budget", 0, "work units of a plan, 0 for the package's default")
	runs := flag.Int("runs", 5, "runs to take the median of")
	degrade := flag.Bool("degrade", false, "plan anew after a medium has become narrower")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	if flag.NArg() == 0 || *runs < 1 || *budget < 0 {
		flag.Usage()
		os.Exit(2)
	}
	err := stats.Files(flag.Args(), *asJSON, func(file string) (*result, error) { return measure(file, *budget, *runs, *degrade) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// read returns the instance of a file, or of a name that stands for one.
func read(file string) (*instance, error) {
	if in, named, err := generated(file); named {
		return in, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var in instance
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, err
	}
	if len(in.Score) != len(in.Components) {
		return nil, fmt.Errorf("%d rows of scores for %d components", len(in.Score), len(in.Components))
	}
	return &in, nil
}

func measure(file string, budget int64, runs int, degrade bool) (*result, error) {
	in, err := read(file)
	if err != nil {
		return nil, err
	}
	p := in.problem()
	p.Budget = budget
	r := &result{File: filepath.Base(file)}
	plan, ms, cpu, err := stats.Repeat(runs, func() (placement.Plan, error) { return placement.Place(p) },
		func(plan placement.Plan) error { return in.check(plan, 0) })
	if err != nil {
		return nil, err
	}
	r.Objective, r.Bound, r.Gap, r.Exact, r.Work = plan.Objective, plan.Bound, plan.Gap, plan.Exact, plan.Work
	r.MS, r.CPUMS, r.Checked = ms, cpu, true
	if cbc, ok := known[r.File]; ok {
		r.Best, r.Short = &cbc.best, (cbc.best-r.Objective)/cbc.best
		if r.Objective > cbc.most+1e-6 || r.Bound < cbc.best-1e-6 {
			return nil, fmt.Errorf("objective %v is above %v, or bound %v is below %v", r.Objective, cbc.most, r.Bound,
				cbc.best)
		}
	}
	if degrade {
		r.Again, err = in.degraded(plan, budget, runs, cpu)
	}
	return r, err
}

// moveCost is what a move costs where the problem does not say.
const moveCost = 200

// degraded plans anew what runs as planned, once the medium that carries most has lost two fifths of that.
func (in *instance) degraded(plan placement.Plan, budget int64, runs int, cold float64) (*again, error) {
	carried := make([]int64, len(in.Media))
	for i, ch := range in.Channels {
		if k, err := strconv.Atoi(plan.Channels[i].Path); err == nil {
			for _, m := range in.Paths[k].Media {
				carried[m] += ch.Bandwidth
			}
		}
	}
	most := 0
	for m := range carried {
		if carried[m] > carried[most] {
			most = m
		}
	}
	if carried[most] == 0 {
		return nil, errors.New("no medium carries anything")
	}
	narrow := *in
	narrow.Media = slices.Clone(in.Media)
	narrow.Media[most].Bandwidth = carried[most] * 3 / 5
	p := narrow.problem()
	p.Budget, p.MoveCost = budget, moveCost
	for i := range p.Components {
		p.Components[i].Current = &plan.Assignments[i].Target
	}
	for i, way := range plan.Channels {
		if !way.Loopback {
			p.Channels[i].Current = &placement.Way{Network: way.Network, Path: way.Path}
		}
	}
	moves := func(plan placement.Plan) (n int) {
		for _, a := range plan.Assignments {
			if a.Moved {
				n++
			}
		}
		return n
	}
	second, ms, cpu, err := stats.Repeat(runs, func() (placement.Plan, error) { return placement.Place(p) },
		func(plan placement.Plan) error { return narrow.check(plan, moveCost*float64(moves(plan))) })
	if err != nil {
		return nil, fmt.Errorf("after a medium has become narrower: %w", err)
	}
	return &again{ms, cpu / cold, float64(second.Work) / float64(plan.Work), moves(second), second.Gap}, nil
}

// problem makes one network node of each cluster, and two of its local network: in and out, so that a path crosses the
// local networks at both its ends.
func (in *instance) problem() placement.Problem {
	const ms = time.Microsecond
	p := placement.Problem{Scores: in.Score}
	top := &network.Topology{Networks: make([]network.Network, 1)}
	n := &top.Networks[0]
	n.ID = "net"
	for i, c := range in.Components {
		p.Components = append(p.Components, placement.Component{
			ID: fmt.Sprintf("c%03d", i), CPU: c.CPU, Memory: c.Memory << 20,
		})
	}
	for i, x := range in.Nodes {
		p.Nodes = append(p.Nodes, placement.Node{
			Orchestrator: "ocm", Cluster: cluster(x.Cluster), Name: fmt.Sprintf("n%04d", i), CPU: x.CPU,
			Memory: x.Memory << 20, Attachment: cluster(x.Cluster),
		})
	}
	link := func(id, from, to, medium string, latency int64) {
		n.Links = append(n.Links, network.Link{
			ID: id, Source: from, Target: to, Medium: medium, Latency: time.Duration(latency) * ms,
		})
	}
	for k, l := range in.LAN {
		c := cluster(k)
		top.Nodes = append(top.Nodes, network.Node{ID: c}, network.Node{ID: "up-" + c, Kind: network.Forwarder},
			network.Node{ID: "down-" + c, Kind: network.Forwarder})
		n.Media = append(n.Media, network.Medium{ID: "lan-" + c, Bandwidth: l.Bandwidth * 1e6})
		link("lan-"+c, c, c, "lan-"+c, l.Latency)
		link("up-"+c, c, "up-"+c, "lan-"+c, l.Latency)
		link("down-"+c, "down-"+c, c, "lan-"+c, l.Latency)
		n.Paths = append(n.Paths, network.Path{ID: "lan-" + c, Links: []string{"lan-" + c}})
	}
	for k, m := range in.Media {
		n.Media = append(n.Media, network.Medium{ID: fmt.Sprint("m", k), Bandwidth: m.Bandwidth * 1e6})
	}
	for i, path := range in.Paths {
		from, to := cluster(path.From), cluster(path.To)
		ids, here := []string{"up-" + from}, "up-"+from
		for j, medium := range path.Media {
			id, next, latency := fmt.Sprintf("p%d-%d", i, j), fmt.Sprintf("p%d-%d", i, j), path.Latency
			if j > 0 {
				latency = 0
			}
			if j == len(path.Media)-1 {
				next = "down-" + to
			} else {
				top.Nodes = append(top.Nodes, network.Node{ID: next, Kind: network.Forwarder})
			}
			if len(path.Media) == 1 { // several paths of one medium would join the same nodes twice
				next = id + "-end"
				top.Nodes = append(top.Nodes, network.Node{ID: next, Kind: network.Forwarder})
			}
			link(id, here, next, fmt.Sprint("m", medium), latency)
			ids, here = append(ids, id), next
		}
		if here != "down-"+to {
			link(fmt.Sprintf("p%d-end", i), here, "down-"+to, fmt.Sprint("free", i), 0)
			n.Media = append(n.Media, network.Medium{ID: fmt.Sprint("free", i), Bandwidth: 1e15})
			ids = append(ids, fmt.Sprintf("p%d-end", i))
		}
		n.Paths = append(n.Paths, network.Path{ID: fmt.Sprint(i), Links: append(ids, "down-"+to)})
	}
	for i, ch := range in.Channels {
		p.Channels = append(p.Channels, placement.Channel{
			ID: fmt.Sprintf("ch%04d", i), From: p.Components[ch.From].ID, To: p.Components[ch.To].ID,
			Bandwidth: ch.Bandwidth * 1e6, MaxLatency: time.Duration(ch.Latency) * ms,
		})
	}
	p.Network = top
	return p
}

func cluster(k int) string { return fmt.Sprintf("k%03d", k) }

// check recomputes the plan from the file's own numbers; moves is what those in it cost.
func (in *instance) check(plan placement.Plan, moves float64) error {
	at := make([]int, len(in.Components))
	cpu, memory, worth := make([]int64, len(in.Nodes)), make([]int64, len(in.Nodes)), 0.0
	for i, c := range in.Components {
		a := plan.Assignments[i]
		k, err := strconv.Atoi(strings.TrimPrefix(a.Target.Node, "n"))
		if err != nil || !a.Placed {
			return fmt.Errorf("component %d has no place", i)
		}
		at[i] = k
		cpu[k], memory[k] = cpu[k]+c.CPU, memory[k]+c.Memory
		worth += in.Score[i][k]
	}
	for k, n := range in.Nodes {
		if cpu[k] > n.CPU || memory[k] > n.Memory {
			return fmt.Errorf("node %d holds %d of %d cpu and %d of %d memory", k, cpu[k], n.CPU, memory[k], n.Memory)
		}
	}
	lan, media := make([]int64, len(in.LAN)), make([]int64, len(in.Media))
	for i, ch := range in.Channels {
		a, b := at[ch.From], at[ch.To]
		from, to, got := in.Nodes[a].Cluster, in.Nodes[b].Cluster, plan.Channels[i]
		if !got.Routed || got.Loopback != (a == b) {
			return fmt.Errorf("channel %d has no route", i)
		}
		if a == b {
			continue
		}
		latency := in.LAN[from].Latency
		lan[from] += ch.Bandwidth
		if from != to {
			k, err := strconv.Atoi(got.Path)
			if err != nil || in.Paths[k].From != from || in.Paths[k].To != to {
				return fmt.Errorf("channel %d takes path %q from %d to %d", i, got.Path, from, to)
			}
			lan[to] += ch.Bandwidth
			latency += in.Paths[k].Latency + in.LAN[to].Latency
			for _, m := range in.Paths[k].Media {
				media[m] += ch.Bandwidth
			}
		}
		if latency > ch.Latency || time.Duration(latency)*time.Microsecond != got.Latency {
			return fmt.Errorf("channel %d takes %d of %d us, and claims %s", i, latency, ch.Latency, got.Latency)
		}
	}
	for k := range lan {
		if lan[k] > in.LAN[k].Bandwidth {
			return fmt.Errorf("LAN %d carries %d of %d", k, lan[k], in.LAN[k].Bandwidth)
		}
	}
	for k := range media {
		if media[k] > in.Media[k].Bandwidth {
			return fmt.Errorf("medium %d carries %d of %d", k, media[k], in.Media[k].Bandwidth)
		}
	}
	if math.Abs(worth-moves-plan.Objective) > 1e-6 {
		return fmt.Errorf("the plan is worth %v and claims %v", worth-moves, plan.Objective)
	}
	return nil
}
