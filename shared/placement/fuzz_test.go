package placement_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/problem"
)

// FuzzPlace turns bytes into a problem, sometimes a malformed or absurd one, and checks all invariants.
func FuzzPlace(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(seed), uint8(seed+1), []byte{byte(seed), 1, 2, 3})
	}
	f.Add(uint64(1), uint8(3), uint8(3), []byte{0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 9, 0, 10, 0, 11, 0})
	f.Fuzz(func(t *testing.T, seed uint64, components, nodes uint8, spoil []byte) {
		r := rand.New(rand.NewPCG(seed, 12))
		p := randomProblem(r, int(components)%7, int(nodes)%7)
		p.Budget = int64(r.IntN(200_000))
		for i := 0; i+1 < len(spoil) && i < 20; i += 2 {
			deform(&p, spoil[i], int(spoil[i+1]))
		}
		plan, err := placement.Place(p)
		if err != nil {
			require.Equal(t, problem.Invalid, problem.KindOf(err))
			var e *problem.Error
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Fields)
			require.Zero(t, placement.Explain(p, plan))
			return
		}
		require.Equal(t, plan, checked(t, p))
		explanation := placement.Explain(p, plan)
		require.Equal(t, explanation, placement.Explain(p, plan))
		require.Equal(t, plan.Placed, explanation.Placed)
		at := numbers(t, p, plan)
		for i, c := range explanation.Components {
			require.Equal(t, at[i] != nowhere, c.Placed)
			require.Len(t, c.Nodes, len(p.Nodes))
			for _, n := range c.Nodes {
				k := nowhere
				for j := range p.Nodes {
					if p.Nodes[j].Target() == n.Target {
						k = j
					}
				}
				other := append([]int(nil), at...)
				other[i] = k
				require.Equal(t, legal(p, other), len(n.Failures) == 0, "%s at %v: %v", c.Component, n.Target, n.Failures)
			}
		}
		placement.Explain(p, placement.Plan{Assignments: []placement.Assignment{{Component: "c0", Placed: true}}})
	})
}

// deform makes one change that a caller might make by mistake or malice.
func deform(p *placement.Problem, kind byte, which int) {
	var c *placement.Component
	var n *placement.Node
	if len(p.Components) > 0 {
		c = &p.Components[which%len(p.Components)]
	}
	if len(p.Nodes) > 0 {
		n = &p.Nodes[which%len(p.Nodes)]
	}
	nan, huge := math.NaN(), int64(1)<<62
	switch kind % 24 {
	case 0:
		p.Affinities = append(p.Affinities, placement.Affinity{A: "c0", B: "c1", Weight: nan})
	case 1:
		p.Affinities = append(p.Affinities, placement.Affinity{A: "c0", B: "c0", Weight: 5})
	case 2:
		p.Weights.Energy = math.Inf(which%2*2 - 1)
	case 3:
		p.MoveCost = float64(which) * 1e8
	case 4:
		p.StaleAfter = time.Duration(which)
	case 16:
		p.Scores = [][]float64{{nan, float64(which)}, nil}
	case 17:
		for range p.Components {
			row := make([]float64, len(p.Nodes))
			for i := range row {
				row[i] = 1e9 / float64(1+which*i)
			}
			p.Scores = append(p.Scores, row)
		}
	case 18:
		p.Groups = append(p.Groups, placement.Group{ID: "g", OneOrchestrator: which%2 == 0, StaleAfter: time.Duration(which)})
	case 19:
		p.Links = append(p.Links, placement.Link{
			A: cluster("north"), B: placement.Target{Orchestrator: "OCM", Cluster: "south"},
			Latency: math.MaxInt64, Cost: float64(which), Bandwidth: huge,
		})
	case 20:
		p.Spreads = append(p.Spreads, placement.Spread{Components: []string{"c0", "c1"}, By: "node", MaxShare: 1e-12})
	case 21: // a cycle with limits that no link can satisfy
		for i := range p.Components {
			p.Affinities = append(p.Affinities, placement.Affinity{
				A: p.Components[i].ID, B: p.Components[(i+1)%len(p.Components)].ID, Weight: float64(which), MaxLatency: 1,
				Bandwidth: math.MaxInt64, NeedsLink: which%2 == 0,
			})
		}
	case 22:
		p.Affinities = append(p.Affinities, placement.Affinity{A: "c0", B: "c1", Weight: 1e9, Scope: "cluster"})
	}
	if c != nil {
		switch kind % 24 {
		case 5:
			c.CPU, c.Memory = huge, math.MaxInt64
		case 6:
			c.Memory = int64(which) - 3
		case 7:
			c.ID = p.Components[0].ID
		case 8:
			c.AntiAffinity = append(c.AntiAffinity, "c0", "c1")
		case 9:
			c.Targets = []placement.Target{{Orchestrator: "OCM"}, {Cluster: "nowhere"}}
		case 10:
			c.Current = &placement.Target{}
		case 23:
			c.Group = "g"
		}
	}
	if n != nil {
		switch kind % 24 {
		case 11:
			n.CPU, n.Memory, n.OtherMemory = huge, math.MaxInt64, huge
		case 12:
			n.Reserved = append(n.Reserved, placement.Reservation{Holder: "x", CPU: math.MaxInt64, Memory: huge},
				placement.Reservation{Holder: "y", CPU: math.MaxInt64, Memory: huge})
		case 13:
			n.EnergyWatts = &nan
		case 14:
			watts := math.MaxFloat64
			n.EnergyWatts, n.SCA, n.CPU = &watts, &watts, 1
		case 15:
			n.Age, n.CPUUsage = time.Duration(which), float64(which)/100
		}
	}
}

// TestConstraintsNeverAddCandidates adds each kind of constraint to a component and compares the nodes it may use.
func TestConstraintsNeverAddCandidates(t *testing.T) {
	t.Parallel()
	type (
		P = *placement.Problem
		C = *placement.Component
	)
	north := []placement.Target{{Cluster: "north"}}
	constraints := map[string]func(P, C){
		"more cpu":             func(_ P, c C) { c.CPU += 700 },
		"more memory":          func(_ P, c C) { c.Memory += 1 << 30 },
		"a device":             func(_ P, c C) { c.Devices = append(c.Devices, "cam") },
		"a resource":           func(_ P, c C) { c.Resources = map[string]int64{"gpu": 3} },
		"an architecture":      func(_ P, c C) { c.Architecture = "arm64" },
		"an engine":            func(_ P, c C) { c.Engines = []string{"docker"} },
		"an orchestrator":      func(_ P, c C) { c.Orchestrators = []string{"OCM"} },
		"others elsewhere":     func(_ P, c C) { c.Shared = []string{"OCM"} },
		"a label":              func(_ P, c C) { c.Labels = map[string][]string{"zone": {"a"}} },
		"a security score":     func(_ P, c C) { c.MinSecurity += 20 },
		"a cpu usage limit":    func(_ P, c C) { c.MaxCPUUsage = 0.5 },
		"a memory usage limit": func(_ P, c C) { c.MaxMemoryUsage = 0.5 },
		"free memory":          func(_ P, c C) { c.MinFreeMemory = 2 << 30 },
		"a fixed target":       func(_ P, c C) { c.Targets = north },
		"an exclusion": func(_ P, c C) {
			c.Excluded = north
		},
		"freshness for the whole plan": func(p P, _ C) { p.StaleAfter = time.Minute },
	}
	candidates := func(p placement.Problem) map[placement.Target]bool {
		out := map[placement.Target]bool{}
		for _, n := range placement.Explain(p, placement.Plan{}).Components[0].Nodes {
			if len(n.Failures) == 0 {
				out[n.Target] = true
			}
		}
		return out
	}
	for name, add := range constraints {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fewer := false
			for seed := range uint64(80) {
				r := rand.New(rand.NewPCG(seed, 13))
				p := randomProblem(r, 1, 12)
				p.Components[0].Labels, p.Components[0].Architecture, p.Components[0].MaxCPUUsage = nil, "", 0
				p.Components[0].Engines, p.Components[0].Excluded, p.Components[0].Resources = nil, nil, nil
				for i := range p.Nodes {
					p.Nodes[i].Age, p.Nodes[i].MemoryUsage = time.Duration(r.IntN(120))*time.Second, r.Float64()
				}
				before := candidates(p)
				add(&p, &p.Components[0])
				after := candidates(p)
				for target := range after {
					require.True(t, before[target], "seed %d: %v was no candidate before", seed, target)
				}
				fewer = fewer || len(after) < len(before)
			}
			require.True(t, fewer, "the constraint rules something out")
		})
	}
}
