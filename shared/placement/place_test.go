package placement_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/problem"
)

func pointer(f float64) *float64 { return &f }

// edge returns an ocm node of the cluster with 8 cores and 8 GiB.
func edge(cluster, name string, change ...func(*placement.Node)) placement.Node {
	n := placement.Node{
		Orchestrator: "ocm", Cluster: cluster, Name: name, Engine: "Kubernetes", Architecture: "x86_64",
		CPU: 8000, Memory: 8 << 30,
	}
	for _, f := range change {
		f(&n)
	}
	return n
}

func at(cluster, name string) *placement.Target {
	return &placement.Target{Orchestrator: "ocm", Cluster: cluster, Node: name}
}

func cluster(name string) placement.Target {
	return placement.Target{Orchestrator: "ocm", Cluster: name}
}

// TestFilters has one component and one node that fails it, and checks the failure.
func TestFilters(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		component placement.Component
		node      func(*placement.Node)
		want      placement.Failure
	}{
		"cpu names who holds the rest": {
			placement.Component{CPU: 4000},
			func(n *placement.Node) {
				n.OtherCPU = 2500
				n.Reserved = []placement.Reservation{{Holder: "shop/web", CPU: 3000}}
			},
			placement.Failure{
				Rule: "cpu", Detail: "needs 4 cores, 2.5 free of 8, 2.5 used by others, 3 reserved by shop/web",
				Needed: "4 cores", Available: "2.5 cores",
			},
		},
		"memory is counted in bytes": {
			placement.Component{Memory: 9 << 30},
			nil,
			placement.Failure{
				Rule: "memory", Detail: "needs 9 GiB, 8 GiB free of 8 GiB", Needed: "9 GiB", Available: "8 GiB",
			},
		},
		"cpu cannot be proven to fit on a node that does not report cores": {
			placement.Component{CPU: 1},
			func(n *placement.Node) { n.CPU = 0 },
			placement.Failure{
				Rule: "cpu", Detail: "needs 0.001 cores, the node does not report how much cpu it has",
				Needed: "0.001 cores", Available: "unknown",
			},
		},
		"each device takes one": {
			placement.Component{Devices: []string{"squat.ai/video", "squat.ai/video"}},
			func(n *placement.Node) {
				n.Devices = map[string]int{"squat.ai/video": 1}
				n.Reserved = []placement.Reservation{{Holder: "cctv/eye", Devices: []string{"squat.ai/video"}}}
			},
			placement.Failure{
				Rule: "device", Key: "squat.ai/video",
				Detail: "needs 2 devices squat.ai/video, 1 free, 1 reserved by cctv/eye",
				Needed: "2 devices squat.ai/video", Available: "1 device squat.ai/video",
			},
		},
		"an architecture is compared by its canonical name": {
			placement.Component{Architecture: "aarch64"},
			nil,
			placement.Failure{
				Rule: "architecture", Detail: "needs architecture arm64, the node has amd64", Needed: "arm64",
				Available: "amd64",
			},
		},
		"an unknown security score fails a bound": {
			placement.Component{MinSecurity: 80},
			nil,
			placement.Failure{
				Rule: "security", Detail: "needs a security score of at least 80, the node's is unknown",
				Needed: "at least 80", Available: "unknown",
			},
		},
		"present usage may not pass its limit": {
			placement.Component{MaxCPUUsage: 0.7},
			func(n *placement.Node) { n.CPUUsage = 0.833 },
			placement.Failure{
				Rule: "cpu-usage", Detail: "cpu usage may be 70 %, it is 83.3 %", Needed: "at most 70 %", Available: "83.3 %",
			},
		},
		"a label must have one of the values": {
			placement.Component{Labels: map[string][]string{"color": {"green", "blue"}}},
			nil,
			placement.Failure{
				Rule: "label", Key: "color", Detail: "needs label color=green|blue, the node has no such label",
				Needed: "color=green|blue", Available: "no such label",
			},
		},
		"an engine is compared in any case": {
			placement.Component{Engines: []string{"DOCKER"}},
			nil,
			placement.Failure{
				Rule: "engine", Detail: "needs engine DOCKER, the node has Kubernetes", Needed: "DOCKER",
				Available: "Kubernetes",
			},
		},
		"an excluded place is out": {
			placement.Component{Excluded: []placement.Target{{Cluster: "a"}}},
			nil,
			placement.Failure{
				Rule: "excluded", Detail: "excluded as */a/*", Needed: "not */a/*", Available: "ocm/a/n1",
			},
		},
		"old telemetry is stale beyond its limit": {
			placement.Component{},
			func(n *placement.Node) { n.Age = time.Minute + time.Second },
			placement.Failure{
				Rule: "freshness", Detail: "its telemetry is 1m1s old, stale after 1m0s", Needed: "at most 1m0s",
				Available: "1m1s",
			},
		},
		"what is doubtful about telemetry is said with its age": {
			placement.Component{},
			func(n *placement.Node) {
				n.Age, n.Doubts = time.Minute+time.Second, []string{"its clock is 1m15s behind"}
			},
			placement.Failure{
				Rule: "freshness", Detail: "its telemetry is 1m1s old, stale after 1m0s; its clock is 1m15s behind", Needed: "at most 1m0s",
				Available: "1m1s",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row.component.ID = "web"
			n := edge("a", "n1")
			if row.node != nil {
				row.node(&n)
			}
			p := placement.Problem{
				Components: []placement.Component{row.component}, Nodes: []placement.Node{n}, StaleAfter: time.Minute,
			}
			plan := checked(t, p)
			require.False(t, plan.Assignments[0].Placed)
			require.Equal(t, map[placement.Rule]int{row.want.Rule: 1}, plan.Assignments[0].Rejections)
			require.Equal(t, []placement.Failure{row.want}, placement.Explain(p, plan).Components[0].Nodes[0].Failures)
		})
	}
}

func TestPlace(t *testing.T) {
	t.Parallel()
	type components = []placement.Component
	type nodes = []placement.Node
	for name, row := range map[string]struct {
		problem placement.Problem
		want    []string // node per component, "" for none
		moved   int
		reason  string // of the first component
	}{
		"nothing to place is a plan": {problem: placement.Problem{}, want: []string{}},
		"without nodes nothing is placed": {
			problem: placement.Problem{Components: components{{ID: "web"}}},
			want:    []string{""}, reason: "there are no nodes",
		},
		"ties go to the smaller name": {
			problem: placement.Problem{Components: components{{ID: "web"}}, Nodes: nodes{edge("a", "n2"), edge("a", "n1")}},
			want:    []string{"n1"},
		},
		"a component that asks nothing may go to a node that reports nothing": {
			problem: placement.Problem{
				Components: components{{ID: "web"}},
				Nodes:      nodes{{Orchestrator: "nuvla", Cluster: "b", Name: "n1", Engine: "Docker"}},
			},
			want: []string{"n1"},
		},
		"capacity is shared by all components": {
			problem: placement.Problem{
				Components: components{{ID: "a", CPU: 5000}, {ID: "b", CPU: 5000}, {ID: "c", CPU: 5000}},
				Nodes:      nodes{edge("a", "n1"), edge("a", "n2")},
			},
			want: []string{"n1", "n2", ""},
		},
		"placing more wins over placing better": {
			problem: placement.Problem{
				Components: components{{ID: "a", CPU: 1000}, {ID: "b", CPU: 8000}},
				Nodes: nodes{
					edge("a", "n1", func(n *placement.Node) { n.SCA = pointer(100) }),
					edge("a", "n2", func(n *placement.Node) { n.CPU = 1000 }),
				},
			},
			want: []string{"n2", "n1"},
		},
		"components that communicate share a node rather than not": {
			problem: placement.Problem{
				Components: components{{ID: "a", CPU: 1000}, {ID: "b", CPU: 1000}},
				Nodes:      nodes{edge("a", "n1"), edge("b", "n1")},
				Affinities: []placement.Affinity{{A: "a", B: "b", Weight: placement.DefaultAffinityWeight}},
			},
			want: []string{"n1", "n1"},
		},
		"replicas that are kept apart do not meet": {
			problem: placement.Problem{
				Components: components{{ID: "web/1", AntiAffinity: []string{"web/2"}}, {ID: "web/2"}},
				Nodes:      nodes{edge("a", "n1"), edge("a", "n2")},
				Affinities: []placement.Affinity{{A: "web/1", B: "web/2", Weight: 1000}},
			},
			want: []string{"n1", "n2"},
		},
		"a spread holds its share per cluster": {
			problem: placement.Problem{
				Components: components{{ID: "a"}, {ID: "b"}, {ID: "c"}},
				Nodes:      nodes{edge("a", "n1"), edge("b", "n2"), edge("a", "n3")},
				Spreads:    []placement.Spread{{Components: []string{"a", "b", "c"}, By: "cluster", MaxShare: 0.5}},
			},
			want: []string{"n1", "n2", ""},
		},
		"one orchestrator takes all, even where another has the better node": {
			problem: placement.Problem{
				Components: components{{ID: "a", CPU: 1000}, {ID: "b", CPU: 8000}},
				Nodes: nodes{
					edge("a", "n1"), edge("a", "n2"),
					{Orchestrator: "nuvla", Cluster: "z", Name: "n9", CPU: 64_000, Memory: 64 << 30, SCA: pointer(100)},
				},
				OneOrchestrator: true,
			},
			want: []string{"n9", "n9"},
		},
		"a component stays where it may although another node is better": {
			problem: placement.Problem{
				Components: components{{ID: "a", Current: at("a", "n2")}},
				Nodes: nodes{
					edge("a", "n1", func(n *placement.Node) { n.SCA = pointer(100); n.EnergyWatts = pointer(1) }),
					edge("a", "n2", func(n *placement.Node) { n.EnergyWatts = pointer(500) }),
				},
			},
			want: []string{"n2"},
		},
		"a violated place is left, and only by the component that must": {
			problem: placement.Problem{
				Components: components{
					{ID: "a", Current: at("a", "n1"), Excluded: []placement.Target{*at("a", "n1")}},
					{ID: "b", Current: at("a", "n1")},
				},
				Nodes:      nodes{edge("a", "n1"), edge("a", "n2")},
				Affinities: []placement.Affinity{{A: "a", B: "b", Weight: placement.DefaultAffinityWeight}},
			},
			want: []string{"n2", "n1"}, moved: 1, reason: "cannot stay at ocm/a/n1: excluded as ocm/a/n1",
		},
		"a lost node is left": {
			problem: placement.Problem{
				Components: components{{ID: "a", Current: at("a", "n1")}},
				Nodes:      nodes{edge("a", "n1", func(n *placement.Node) { n.Stale = true }), edge("a", "n2")},
			},
			want: []string{"n2"}, moved: 1, reason: "cannot stay at ocm/a/n1: its telemetry is stale",
		},
		"a node that is gone is left": {
			problem: placement.Problem{
				Components: components{{ID: "a", Current: at("a", "n0")}}, Nodes: nodes{edge("a", "n2")},
			},
			want: []string{"n2"}, moved: 1, reason: "its place ocm/a/n0 is not among the nodes",
		},
		"a running component makes room when another has no place otherwise": {
			problem: placement.Problem{
				Components: components{{ID: "a", CPU: 1000, Current: at("a", "n1")}, {ID: "b", CPU: 8000}},
				Nodes:      nodes{edge("a", "n1"), edge("a", "n2", func(n *placement.Node) { n.CPU = 2000 })},
			},
			want: []string{"n2", "n1"}, moved: 1,
			reason: "cannot stay at ocm/a/n1: needs 1 core, 0 free of 8, 8 taken by b",
		},
		"a running component keeps its place when only one can have it": {
			problem: placement.Problem{
				Components: components{{ID: "a", CPU: 8000}, {ID: "b", CPU: 8000, Current: at("a", "n1")}},
				Nodes:      nodes{edge("a", "n1")},
			},
			want:   []string{"", "n1"},
			reason: "1 node of 1 could take it alone, but not beside the other components: cpu 1",
		},
		"a move that gains enough is made": {
			problem: placement.Problem{
				Components: components{{ID: "a", Current: at("a", "n2")}},
				Nodes:      nodes{edge("a", "n1", func(n *placement.Node) { n.SCA = pointer(100) }), edge("a", "n2")},
				MoveCost:   1,
			},
			want: []string{"n1"}, moved: 1, reason: "leaving ocm/a/n2 gains 32.3 points after the move cost of 1",
		},
		"an affinity to a cluster cares for nothing but the cluster": {
			problem: placement.Problem{
				Components: components{{ID: "a"}, {ID: "b"}},
				Nodes: nodes{
					edge("a", "n1", func(n *placement.Node) { n.SCA = pointer(50) }),
					edge("b", "n2", func(n *placement.Node) { n.SCA = pointer(100) }), edge("a", "n3"),
				},
				Affinities: []placement.Affinity{{A: "a", B: "b", Weight: 1, Scope: "cluster"}},
				Scores:     [][]float64{{1, 90, 2}, {3, 0, 90}},
			},
			want: []string{"n2", "n3"},
		},
		"a latency limit binds two components where their scores would not": {
			problem: placement.Problem{
				Components: components{{ID: "a"}, {ID: "b"}},
				Nodes:      nodes{edge("a", "n1"), edge("b", "n2"), edge("c", "n3")},
				Affinities: []placement.Affinity{{A: "a", B: "b", MaxLatency: 5 * time.Millisecond}},
				Scores:     [][]float64{{90, 0, 0}, {0, 80, 90}},
				Links: []placement.Link{
					{A: cluster("a"), B: cluster("b"), Latency: 5 * time.Millisecond},
					{A: cluster("c"), B: cluster("a"), Latency: 6 * time.Millisecond},
				},
			},
			want: []string{"n1", "n2"},
		},
		"components that talk stay where a link can be": {
			problem: placement.Problem{
				Components: components{{ID: "a"}, {ID: "b"}},
				Nodes:      nodes{edge("a", "n1"), edge("b", "n2"), edge("c", "n3")},
				Affinities: []placement.Affinity{{A: "a", B: "b", NeedsLink: true}},
				Scores:     [][]float64{{90, 0, 0}, {0, 80, 90}},
				Peers:      []placement.Target{cluster("a"), cluster("b"), cluster("gone")},
			},
			want: []string{"n1", "n2"},
		},
		"without peers, components that talk share a cluster": {
			problem: placement.Problem{
				Components: components{{ID: "a"}, {ID: "b"}},
				Nodes:      nodes{edge("a", "n1"), edge("a", "n2"), edge("c", "n3")},
				Affinities: []placement.Affinity{{A: "a", B: "b", NeedsLink: true}},
				Scores:     [][]float64{{90, 0, 0}, {0, 80, 90}},
			},
			want: []string{"n1", "n2"},
		},
		"a link carries no more than it can": {
			problem: placement.Problem{
				Components: components{{ID: "a"}, {ID: "b"}, {ID: "c"}},
				Nodes:      nodes{edge("a", "n1"), edge("b", "n2")},
				Affinities: []placement.Affinity{{A: "a", B: "b", Bandwidth: 6}, {A: "a", B: "c", Bandwidth: 6}},
				Scores:     [][]float64{{90, 0}, {10, 80}, {10, 90}},
				Links:      []placement.Link{{A: cluster("a"), B: cluster("b"), Bandwidth: 10}},
			},
			want: []string{"n1", "n1", "n2"},
		},
		"a near cluster is better than a far one": {
			problem: placement.Problem{
				Components: components{{ID: "a", Targets: []placement.Target{{Cluster: "a"}}}, {ID: "b"}},
				Nodes:      nodes{edge("a", "n1", func(n *placement.Node) { n.CPU = 0 }), edge("b", "n2"), edge("c", "n3")},
				Affinities: []placement.Affinity{{A: "a", B: "b", Weight: 10}},
				Scores:     [][]float64{{1, 1, 1}, {0, 50, 49}},
				Links: []placement.Link{
					{A: cluster("a"), B: cluster("b"), Latency: time.Second},
					{A: cluster("a"), B: cluster("c"), Latency: time.Millisecond},
				},
			},
			want: []string{"n1", "n3"},
		},
		"each group has an orchestrator and weights of its own": {
			problem: placement.Problem{
				Components: components{
					{ID: "a/x", Group: "a"}, {ID: "a/y", Group: "a"}, {ID: "b/x", Group: "b"}, {ID: "b/y", Group: "b"},
				},
				Nodes: nodes{edge("a", "n1"), {Orchestrator: "nuvla", Cluster: "z", Name: "n9", CPU: 8000}},
				Groups: []placement.Group{
					{ID: "a", OneOrchestrator: true}, {ID: "b", OneOrchestrator: true},
				},
				Scores: [][]float64{{90, 10}, {10, 80}, {10, 90}, {80, 10}},
			},
			want: []string{"n1", "n1", "n9", "n9"},
		},
		"a circle of affinities is no riddle": {
			problem: placement.Problem{
				Components: components{{ID: "a", CPU: 5000}, {ID: "b", CPU: 5000}, {ID: "c", CPU: 5000}},
				Nodes:      nodes{edge("a", "n1"), edge("a", "n2"), edge("b", "n3"), edge("a", "n4")},
				Affinities: []placement.Affinity{
					{A: "a", B: "b", Weight: 50}, {A: "b", B: "c", Weight: 50}, {A: "c", B: "a", Weight: 50},
				},
			},
			want: []string{"n1", "n2", "n4"},
		},
		"a self affinity changes nothing": {
			problem: placement.Problem{
				Components: components{{ID: "a"}}, Nodes: nodes{edge("a", "n1")},
				Affinities: []placement.Affinity{{A: "a", B: "a", Weight: 50}},
			},
			want: []string{"n1"},
		},
		"capacities near the end of the numbers do not wrap": {
			problem: placement.Problem{
				Components: components{{ID: "a", CPU: 1 << 62}, {ID: "b", CPU: 1 << 62}, {ID: "c", CPU: 1 << 62}},
				Nodes: nodes{edge("a", "n1", func(n *placement.Node) {
					n.CPU = math.MaxInt64
					n.Memory, n.OtherMemory = 1<<62, math.MaxInt64
				})},
			},
			want: []string{"n1", "", ""}, // two of 2^62 are one more than int64 can hold
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := checked(t, row.problem)
			require.True(t, plan.Exact)
			got, moved := []string{}, 0
			for _, a := range plan.Assignments {
				got = append(got, a.Target.Node)
				if a.Moved {
					moved++
				}
			}
			require.Equal(t, row.want, got)
			require.Equal(t, row.moved, moved)
			if row.reason != "" {
				require.Equal(t, row.reason, plan.Assignments[0].Reason)
			}
		})
	}
}

func TestMalformedProblemsAreRefused(t *testing.T) {
	t.Parallel()
	type P = *placement.Problem
	good := func() placement.Problem {
		return placement.Problem{
			Components: []placement.Component{{ID: "a"}, {ID: "b"}}, Nodes: []placement.Node{edge("a", "n1"), edge("a", "n2")},
		}
	}
	for name, row := range map[string]struct {
		spoil func(*placement.Problem)
		path  string
	}{
		"a component twice": {func(p P) { p.Components[1].ID = "a" }, "components[1].id"},
		"a component without id": {
			func(p P) { p.Components[0].ID = "" },
			"components[0].id",
		},
		"a node twice, in any case": {
			func(p P) { p.Nodes[1].Name, p.Nodes[1].Orchestrator = "n1", "OCM" },
			"nodes[1]",
		},
		"a node without name": {func(p P) { p.Nodes[0].Name = "" }, "nodes[0].name"},
		"negative capacity":   {func(p P) { p.Nodes[0].Memory = -1 }, "nodes[0].memory"},
		"negative demand":     {func(p P) { p.Components[0].CPU = -1 }, "components[0].cpu"},
		"a score that is no number": {
			func(p P) { p.Nodes[0].SCA = pointer(math.NaN()) },
			"nodes[0].sca",
		},
		"endless energy": {
			func(p P) { p.Nodes[0].EnergyWatts = pointer(math.Inf(1)) },
			"nodes[0].energyWatts",
		},
		"a usage that is no number": {
			func(p P) { p.Nodes[0].CPUUsage = math.NaN() },
			"nodes[0].cpuUsage",
		},
		"a weight that is no number": {
			func(p P) { p.Weights.Energy = math.NaN() },
			"weights.energy",
		},
		"a negative affinity": {
			func(p P) { p.Affinities = []placement.Affinity{{A: "a", B: "b", Weight: -1}} },
			"affinities[0].weight",
		},
		"an affinity with nobody": {
			func(p P) { p.Affinities = []placement.Affinity{{A: "a", B: "x"}} },
			"affinities[0].b",
		},
		"anti-affinity with itself": {
			func(p P) { p.Components[0].AntiAffinity = []string{"a"} },
			"components[0].antiAffinity[0]",
		},
		"a given score that is no number": {
			func(p P) { p.Scores = [][]float64{{1, math.NaN()}, {1, 1}} },
			"scores[0][1]",
		},
		"too few rows of scores": {
			func(p P) { p.Scores = [][]float64{{1, 1}} },
			"scores",
		},
		"an affinity to nothing known": {
			func(p P) { p.Affinities = []placement.Affinity{{A: "a", B: "b", Scope: "planet"}} },
			"affinities[0].scope",
		},
		"a link from a cluster to itself": {
			func(p P) { p.Links = []placement.Link{{A: cluster("a"), B: cluster("a")}} },
			"links[0]",
		},
		"a second link between two clusters": {
			func(p P) {
				p.Links = []placement.Link{{A: cluster("a"), B: cluster("b")}, {A: cluster("b"), B: cluster("a")}}
			},
			"links[1]",
		},
		"a group without id": {
			func(p P) { p.Groups = []placement.Group{{}} },
			"groups[0].id",
		},
		"a group twice": {
			func(p P) { p.Groups = []placement.Group{{ID: "shop"}, {ID: "shop"}} },
			"groups[1].id",
		},
		"a group's weight that is no number": {
			func(p P) {
				p.Groups = []placement.Group{{ID: "shop", Weights: placement.Weights{Security: math.NaN()}}}
			},
			"groups[0].weights.security",
		},
		"a group's weight of performance below nothing": {
			func(p P) { p.Groups = []placement.Group{{ID: "shop", Weights: placement.Weights{Performance: -1}}} },
			"groups[0].weights.performance",
		},
		"a preference that names one twice": {
			func(p P) {
				p.Preferences = []placement.Preference{{Name: "near", Components: []string{"a", "a"}, Points: []float64{0, 1}}}
			},
			"preferences[0].components[1]",
		},
		"too few points of a preference": {
			func(p P) {
				p.Preferences = []placement.Preference{{Name: "near", Components: []string{"a"}, Points: []float64{1}}}
			},
			"preferences[0].points",
		},
		"points below nothing": {
			func(p P) {
				p.Preferences = []placement.Preference{{Name: "near", Components: []string{"a"}, Points: []float64{1, -1}}}
			},
			"preferences[0].points[1]",
		},
		"a negative reservation": {
			func(p P) { p.Nodes[0].Reserved = []placement.Reservation{{Holder: "x", Memory: -1}} },
			"nodes[0].reserved[0].memory",
		},
		"a negative device": {
			func(p P) { p.Nodes[1].Devices = map[string]int{"gpu": -1} },
			"nodes[1].devices.gpu",
		},
		"a group that is not there": {
			func(p P) { p.Components[1].Group = "shop" },
			"components[1].group",
		},
		"a spread without limit": {
			func(p P) { p.Spreads = []placement.Spread{{By: "node"}} },
			"spreads[0]",
		},
		"a spread that names one twice": {func(p *placement.Problem) {
			p.Spreads = []placement.Spread{{By: "node", Max: 1, Components: []string{"a", "a"}}}
		}, "spreads[0].components[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := good()
			_, err := placement.Place(p)
			require.NoError(t, err)
			row.spoil(&p)
			_, err = placement.Place(p)
			require.Equal(t, problem.Invalid, problem.KindOf(err))
			var e *problem.Error
			require.ErrorAs(t, err, &e)
			require.Len(t, e.Fields, 1)
			require.Equal(t, row.path, e.Fields[0].Path)
			require.Zero(t, placement.Explain(p, placement.Plan{}))
		})
	}
}

func TestCanonicalArchitecture(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"x86_64": "amd64", "Intel": "amd64", "amd64": "amd64", "AArch64": "arm64", "arm64": "arm64", "armv7l": "arm",
		"i686": "386", "riscv64": "riscv64", " ": "",
	} {
		require.Equal(t, want, placement.CanonicalArchitecture(in), in)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	p := placement.Problem{
		Components: []placement.Component{
			{ID: "db", CPU: 6000, Memory: 1 << 30}, {ID: "web", CPU: 4000}, {ID: "big", CPU: 32_000},
		},
		Nodes: []placement.Node{
			edge("a", "n1", func(n *placement.Node) { n.SCA = pointer(90) }), edge("a", "n2"),
			edge("b", "n3", func(n *placement.Node) { n.Unschedulable = true }),
		},
		Affinities: []placement.Affinity{{A: "db", B: "web", Weight: 50}},
	}
	plan := checked(t, p)
	e := placement.Explain(p, plan)
	require.Equal(t, plan.Objective, e.Objective)
	require.Equal(t, 2, e.Placed)
	require.True(t, e.Exact)

	web := e.Components[1]
	require.True(t, web.Nodes[0].Chosen)
	require.Equal(t, plan.Assignments[1].Target, web.Nodes[0].Target)
	require.Equal(t, plan.Assignments[1].Score, web.Nodes[0].Score)
	require.Equal(t, []placement.AffinityTerm{{With: "db", Closeness: "same-cluster", Weight: 50, Points: 35}},
		web.Nodes[0].Affinity)
	require.InDelta(t, web.Nodes[0].Score.Weighted+35, web.Nodes[0].Total, 1e-9)
	require.Contains(t, web.Summary, "is the only one of 3 nodes that can take it")
	require.Equal(t, "needs 4 cores, 2 free of 8, 6 taken by db", web.Nodes[1].Failures[0].Detail)
	require.Equal(t, map[placement.Rule]int{"cpu": 1, "unschedulable": 1}, web.Rejections)

	big := e.Components[2]
	require.False(t, big.Placed)
	require.Equal(t, "none of 3 nodes meets its requirements: cpu 3, unschedulable 1", big.Summary)
	require.Len(t, big.Nodes, 3)
	require.Len(t, big.Relaxation.Changes, 1)
	require.Equal(t, placement.RuleCPU, big.Relaxation.Changes[0].Rule)
	require.Equal(t, "lower cpu from 32 cores to 4 cores", big.Relaxation.Changes[0].Detail)
	require.True(t, big.Relaxation.Verified)
}

// TestWhatKeepsApartIsExplained: a node with as many members as its domain may hold takes no other, and what is kept apart could be
// allowed together.
func TestWhatKeepsApartIsExplained(t *testing.T) {
	t.Parallel()
	p := placement.Problem{
		Components: []placement.Component{{ID: "web/0"}, {ID: "web/1"}, {ID: "web/2"}},
		Nodes:      []placement.Node{edge("a", "n1")},
		Spreads:    []placement.Spread{{By: "node", Max: 2, Components: []string{"web/0", "web/1", "web/2"}}},
	}
	plan := checked(t, p)
	require.Equal(t, 2, plan.Placed)
	for i, a := range plan.Assignments {
		if a.Placed {
			continue
		}
		require.Equal(t, map[placement.Rule]int{placement.RuleSpread: 1}, a.Rejections)
		require.Equal(t, a.Rejections, placement.Explain(p, plan).Components[i].Rejections)
	}

	p.Spreads = nil
	p.Components = []placement.Component{{ID: "db"}, {ID: "web", AntiAffinity: []string{"db"}}}
	plan = checked(t, p)
	require.Equal(t, 1, plan.Placed)
	for i, a := range plan.Assignments {
		if a.Placed {
			continue
		}
		other := p.Components[1-i].ID
		relaxed := placement.Explain(p, plan).Components[i].Relaxation
		require.True(t, relaxed.Verified, "whoever of the two it is kept apart by")
		require.Equal(t, "allow it on the node of "+other, relaxed.Changes[0].Detail)
	}
}

// TestTheStakeOfAMoveIsExplained: what a component loses by a move counts at every node but its own.
func TestTheStakeOfAMoveIsExplained(t *testing.T) {
	t.Parallel()
	p := placement.Problem{
		Components: []placement.Component{{ID: "x", CPU: 1000}}, Nodes: []placement.Node{edge("a", "n1"), edge("a", "n2")}, MoveCost: 7,
	}
	home := p.Nodes[1].Target()
	p.Components[0].Current = &home
	for _, n := range placement.Explain(p, checked(t, p)).Components[0].Nodes {
		require.Equal(t, n.Target == home, n.Chosen)
		require.Equal(t, n.Target == home, n.Move == 0, n.Target)
	}
}

// TestRejectionsCountAlike: whether or not the component has a place, a node that it could never use does not also
// count as full.
func TestRejectionsCountAlike(t *testing.T) {
	t.Parallel()
	p := placement.Problem{
		Components: []placement.Component{{ID: "db", CPU: 8000, Targets: []placement.Target{*at("a", "n1")}}, {ID: "web", CPU: 4000, MinSecurity: 50}},
		Nodes:      []placement.Node{edge("a", "n1"), edge("a", "n2", func(n *placement.Node) { n.SCA = pointer(90) })},
	}
	require.Equal(t, map[placement.Rule]int{"security": 1}, placement.Explain(p, checked(t, p)).Components[1].Rejections)
	p.Nodes = p.Nodes[:1]
	plan := checked(t, p)
	require.Equal(t, map[placement.Rule]int{"security": 1}, placement.Explain(p, plan).Components[1].Rejections)
	require.Equal(t, map[placement.Rule]int{"security": 1}, plan.Assignments[1].Rejections)
}

// TestExplainAMove: the explanation of a move is valid before and after it, since decisions are stored.
func TestExplainAMove(t *testing.T) {
	t.Parallel()
	p := placement.Problem{
		Components: []placement.Component{{ID: "x", CPU: 1000}},
		Nodes:      []placement.Node{edge("a", "n1", func(n *placement.Node) { n.Unschedulable = true }), edge("a", "n2")},
	}
	from, to := p.Nodes[0].Target(), p.Nodes[1].Target()
	p.Components[0].Current = &from
	plan := checked(t, p)
	require.Equal(t, to, plan.Assignments[0].Target)
	require.Regexp(t, "can take it; a move away from .*a/n1$", placement.Explain(p, plan).Components[0].Summary)
}

// TestWhatReservesNothingWeighsOnTheScore: each component without requests lowers the score of its node a little, and
// takes no capacity.
func TestWhatReservesNothingWeighsOnTheScore(t *testing.T) {
	t.Parallel()
	full := edge("a", "n1", func(n *placement.Node) {
		n.Reserved = []placement.Reservation{{Holder: "shop/web"}, {Holder: "shop/db", Memory: 1 << 30}}
	})
	p := placement.Problem{
		Components: []placement.Component{{ID: "x"}}, Nodes: []placement.Node{full, edge("a", "n2")},
		Weights: placement.Weights{Performance: 1},
	}
	plan := checked(t, p)
	require.Equal(t, "n2", plan.Assignments[0].Target.Node)
	require.InDelta(t, 100, plan.Assignments[0].Score.Performance, 1e-9)
	at := placement.Explain(p, plan).Components[0].Nodes[1]
	require.InDelta(t, 100-50*(200/8000.0+(200+1024)/8192.0), at.Score.Performance, 1e-9)

	p.Components[0].CPU = 8000
	p.Nodes = p.Nodes[:1]
	require.True(t, checked(t, p).Assignments[0].Placed, "all cores are free")
}

// TestExplainIsBounded: for a large problem it lists the first nodes by rank, and counts all.
func TestExplainIsBounded(t *testing.T) {
	t.Parallel()
	p := placement.Problem{Budget: 1}
	for i := range 200 {
		p.Components = append(p.Components, placement.Component{ID: fmt.Sprintf("c%03d", i), CPU: 10})
	}
	for i := range 800 {
		p.Nodes = append(p.Nodes, edge("a", fmt.Sprintf("n%03d", i), func(n *placement.Node) { n.Unschedulable = i >= 600 }))
	}
	plan, err := placement.Place(p)
	require.NoError(t, err)
	listed := 0
	for _, c := range placement.Explain(p, plan).Components {
		listed += len(c.Nodes)
		require.True(t, c.Nodes[0].Chosen)
		require.Equal(t, 800, len(c.Nodes)+c.Omitted)
		require.Equal(t, 600, c.Fit)
		require.Equal(t, map[placement.Rule]int{placement.RuleUnschedulable: 200}, c.Rejections)
	}
	require.LessOrEqual(t, listed, placement.MaxExplained)

	only := placement.ExplainOnly(p, plan, func(i int) bool { return i == 7 })
	require.Len(t, only.Components, 200)
	for i, c := range only.Components {
		if i == 7 {
			require.Len(t, c.Nodes, 800, "alone it is told in full")
			c.Cut(6)
			require.Len(t, c.Nodes, 6)
			require.Equal(t, 794, c.Omitted)
			continue
		}
		require.Zero(t, c)
	}
}

func TestPricesAreWhatScarceCapacityIsWorth(t *testing.T) {
	t.Parallel()
	unit := placement.Problem{
		Components: []placement.Component{{ID: "a", CPU: 4000}, {ID: "b", CPU: 4000}, {ID: "c", CPU: 4000}},
		Nodes:      []placement.Node{edge("a", "n1"), edge("a", "n2"), edge("b", "n3")},
		Scores:     [][]float64{{90, 10, 0}, {90, 20, 0}, {90, 30, 0}},
	}
	plan := checked(t, unit)
	require.Len(t, plan.Prices, 1, "of the second node only half is used")
	require.Equal(t, unit.Nodes[0].Target(), plan.Prices[0].Target)
	require.Equal(t, placement.RuleCPU, plan.Prices[0].Rule)
	require.Equal(t, "core", plan.Prices[0].Unit)
	require.GreaterOrEqual(t, plan.Prices[0].Points, (90-30)/4.0-1e-6, "the last to give way loses 60 points for 4 cores")
	require.LessOrEqual(t, plan.Prices[0].Points, (90-20)/4.0+1e-6)
	require.Equal(t, plan.Prices, placement.Explain(unit, plan).Prices)

	general := unit
	general.Components = []placement.Component{{ID: "a", CPU: 5000}, {ID: "b", CPU: 4000}, {ID: "c", CPU: 4000}}
	plan = checked(t, general)
	require.NotEmpty(t, plan.Prices)
	require.Equal(t, unit.Nodes[0].Target(), plan.Prices[0].Target)
}

func TestLimitsOfLinksAreExplained(t *testing.T) {
	t.Parallel()
	p := placement.Problem{
		Components: []placement.Component{
			{ID: "a", Targets: []placement.Target{cluster("a")}}, {ID: "b", Targets: []placement.Target{cluster("b")}},
		},
		Nodes:      []placement.Node{edge("a", "n1"), edge("b", "n2")},
		Affinities: []placement.Affinity{{A: "a", B: "b", MaxLatency: time.Millisecond, Bandwidth: 7}},
		Links: []placement.Link{
			{A: cluster("a"), B: cluster("b"), Latency: 3 * time.Millisecond, Bandwidth: 5},
		},
	}
	plan := checked(t, p)
	require.Equal(t, 1, plan.Placed)
	b := placement.Explain(p, plan).Components[1]
	if plan.Assignments[1].Placed {
		b = placement.Explain(p, plan).Components[0]
	}
	var rules []placement.Rule
	for _, n := range b.Nodes {
		for _, f := range n.Failures {
			rules = append(rules, f.Rule)
		}
	}
	require.Subset(t, rules, []placement.Rule{placement.RuleLatency, placement.RuleBandwidth})
	require.NotNil(t, b.Relaxation)
	require.True(t, b.Relaxation.Verified)
}

func TestALackOfALinkIsExplained(t *testing.T) {
	t.Parallel()
	p := placement.Problem{
		Components: []placement.Component{
			{ID: "a", Excluded: []placement.Target{cluster("b")}}, {ID: "b", Excluded: []placement.Target{cluster("a")}},
		},
		Nodes:      []placement.Node{edge("a", "n1"), edge("b", "n2")},
		Affinities: []placement.Affinity{{A: "a", B: "b", NeedsLink: true}},
		Peers:      []placement.Target{cluster("a")},
	}
	plan := checked(t, p)
	require.Equal(t, 1, plan.Placed)
	at := 1
	if plan.Assignments[at].Placed {
		at = 0
	}
	require.Equal(t, 1, plan.Assignments[at].Rejections[placement.RuleLink])
	ex := placement.Explain(p, plan).Components[at]
	var said []string
	for _, n := range ex.Nodes {
		for _, f := range n.Failures {
			if f.Rule == placement.RuleLink {
				said = append(said, f.Detail)
			}
		}
	}
	require.Len(t, said, 1)
	require.Contains(t, said[0], "b is no peer that can be reached")
	require.NotNil(t, ex.Relaxation)
	require.True(t, ex.Relaxation.Verified)
	require.Contains(t, ex.Relaxation.Changes[0].Detail, "without a link")
	p.Peers = append(p.Peers, cluster("b"))
	require.Equal(t, 2, checked(t, p).Placed)
}

// A given score of -0 counts as 0: it must not come first among the candidates and hide better ones from the bound.
func TestPlace_negativeZero(t *testing.T) {
	t.Parallel()
	nothing := math.Copysign(0, -1)
	p := placement.Problem{
		Components: []placement.Component{{ID: "a", CPU: 2000}, {ID: "b", CPU: 1000}},
		Nodes: []placement.Node{
			{Orchestrator: "o", Cluster: "k", Name: "large", CPU: 9000},
			{Orchestrator: "o", Cluster: "k", Name: "small", CPU: 2000},
		},
		Scores: [][]float64{{nothing, 5}, {nothing, 50}},
	}
	plan, err := placement.Place(p)
	require.NoError(t, err)
	require.InDelta(t, 50, plan.Objective, 1e-9)
	require.GreaterOrEqual(t, plan.Bound, 50.0)
}
