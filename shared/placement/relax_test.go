package placement_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/placement"
)

// possible tries every placement, and reports whether one places the component and at least that many in total.
func possible(p placement.Problem, component, placed int) bool {
	at := make([]int, len(p.Components))
	var try func(i int) bool
	try = func(i int) bool {
		if i == len(at) {
			n := 0
			for _, k := range at {
				if k != nowhere {
					n++
				}
			}
			return at[component] != nowhere && n >= placed && legal(p, at)
		}
		for k := nowhere; k < len(p.Nodes); k++ {
			at[i] = k
			if try(i + 1) {
				return true
			}
		}
		return false
	}
	return try(0)
}

// TestRelaxationsAreEnoughAndNotTooMuch proves both halves by trying every placement.
func TestRelaxationsAreEnoughAndNotTooMuch(t *testing.T) {
	t.Parallel()
	seen := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 14))
		p := randomProblem(r, 1+r.IntN(3), 1+r.IntN(4))
		plan := checked(t, p)
		for i, a := range plan.Assignments {
			if a.Placed {
				continue
			}
			all, short, ok := placement.Relaxed(p, plan, i)
			if !ok {
				continue
			}
			seen++
			require.True(t, possible(all, i, plan.Placed+1), "seed %d: %s still has no place", seed, a.Component)
			for k := range short {
				require.False(t, possible(short[k], i, plan.Placed+1), "seed %d: %s: change %d is needless", seed,
					a.Component, k)
			}
		}
	}
	require.Greater(t, seen, 100)
}

func TestRelaxationWording(t *testing.T) {
	t.Parallel()
	score := 72.0
	node := placement.Node{
		Orchestrator: "ocm", Cluster: "edge", Name: "n1", Engine: "Kubernetes", Architecture: "arm64", CPU: 8000,
		Memory: 8 << 30, SCA: &score, Labels: map[string]string{"zone": "a"}, CPUUsage: 0.6,
		Devices: map[string]int{"cam": 1}, Resources: map[string]int64{"gpu": 1},
	}
	for name, row := range map[string]struct {
		component placement.Component
		changes   []string
	}{
		"cpu is lowered to what is free": {
			placement.Component{CPU: 16_000},
			[]string{"lower cpu from 16 cores to 8 cores"},
		},
		"memory is lowered to what is free": {
			placement.Component{Memory: 9 << 30},
			[]string{"lower memory from 9 GiB to 8 GiB"},
		},
		"a device that is not there is left": {
			placement.Component{Devices: []string{"gps"}},
			[]string{"ask for no device gps instead of 1"},
		},
		"devices are lowered to the number there is": {
			placement.Component{Devices: []string{"cam", "cam"}},
			[]string{"lower device cam from 2 to 1"},
		},
		"a resource is lowered": {
			placement.Component{Resources: map[string]int64{"gpu": 4}},
			[]string{"lower gpu from 4 to 1"},
		},
		"the security score is lowered": {
			placement.Component{MinSecurity: 80},
			[]string{"lower the security score from 80 to 72"},
		},
		"a usage limit is raised": {
			placement.Component{MaxCPUUsage: 0.5},
			[]string{"raise the cpu usage limit from 50 % to 60 %"},
		},
		"a label is dropped": {
			placement.Component{Labels: map[string][]string{"zone": {"b"}}},
			[]string{"drop the label (zone=b)"},
		},
		"a fixed place is dropped": {
			placement.Component{Targets: []placement.Target{{Cluster: "far"}}},
			[]string{"drop the fixed place (*/far/*)"},
		},
		"all that fails must change": {
			placement.Component{CPU: 9000, Architecture: "x86_64", MinFreeMemory: 16 << 30},
			[]string{
				"drop the architecture (amd64)", "lower free memory from 16 GiB to 8 GiB", "lower cpu from 9 cores to 8 cores",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row.component.ID = "web"
			p := placement.Problem{Components: []placement.Component{row.component}, Nodes: []placement.Node{node}}
			plan := checked(t, p)
			require.False(t, plan.Assignments[0].Placed)
			r := placement.Explain(p, plan).Components[0].Relaxation
			require.NotNil(t, r)
			require.True(t, r.Verified)
			require.Equal(t, node.Target(), r.Target)
			var got []string
			for _, ch := range r.Changes {
				got = append(got, ch.Detail)
			}
			require.Equal(t, row.changes, got)
		})
	}
	t.Run("a node that takes no work offers no relaxation", func(t *testing.T) {
		t.Parallel()
		lost := node
		lost.Unschedulable = true
		p := placement.Problem{Components: []placement.Component{{ID: "web", CPU: 16_000}}, Nodes: []placement.Node{lost}}
		require.Nil(t, placement.Explain(p, checked(t, p)).Components[0].Relaxation)
	})
}
