package flow

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// hubs returns tasks that go to machines through one of several hubs, or directly.
func hubs(r *rand.Rand, tasks, count, straight int) *Problem {
	p := NewProblem(tasks + count + tasks/2 + 1)
	machine, sink := tasks+count, tasks+count+tasks/2
	for t := range tasks {
		p.SetSupply(t, 1)
		for h := range count {
			p.AddArc(t, tasks+h, 0, 1, r.Int64N(1000))
		}
		for range straight {
			p.AddArc(t, machine+r.IntN(tasks/2), 0, 1, r.Int64N(1000))
		}
	}
	for m := range tasks / 2 {
		for h := range count {
			p.AddArc(tasks+h, machine+m, 0, 1+r.Int64N(3), r.Int64N(1000))
		}
		p.AddArc(machine+m, sink, 0, 2+r.Int64N(2), r.Int64N(10))
	}
	p.SetSupply(sink, -int64(tasks))
	return p
}

// Before every pivot of cold and warm solves, all tree arcs have reduced cost 0, and the listed part is the one that
// moved last. It shrinks and grows meanwhile.
func TestShift_keepsPotentials(t *testing.T) {
	t.Parallel()
	grown, shrunk := 0, 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := hubs(r, 50+r.IntN(150), 2, r.IntN(3))
		s := NewSolver(p)
		had := 0
		s.rule = func(s *Solver) int32 {
			for v := s.next[s.root]; v != s.root; v = s.next[v] {
				n, want := &s.nodes[v], s.bigM
				switch {
				case n.arc == artUp:
					want = -want
				case n.arc >= 0 && s.arcs[n.arc].tail == v:
					want = -s.arcs[n.arc].cost
				case n.arc >= 0:
					want = s.arcs[n.arc].cost
				}
				require.Equal(t, want, s.pi[v]-s.pi[n.parent])
			}
			if s.listed {
				var moved []int32
				for v := s.top; len(moved) < int(s.nodes[s.top].size); v = s.next[v] {
					moved = append(moved, v)
				}
				require.ElementsMatch(t, moved, s.part)
				if had > 0 {
					grown, shrunk = grown+max(0, min(1, len(moved)-had)), shrunk+max(0, min(1, had-len(moved)))
				}
				had = len(moved)
			} else {
				had = 0
			}
			return blockSearch(s)
		}
		sol := &Solution{}
		for range 10 {
			require.NoError(t, s.SolveInto(sol))
			require.NoError(t, sol.Verify(p))
			cold, err := NewSolver(p).Solve()
			require.NoError(t, err)
			require.Equal(t, cold.Cost, sol.Cost)
			for range p.Arcs() / 50 {
				p.SetCost(ArcID(r.IntN(p.Arcs())), r.Int64N(1000))
			}
		}
	}
	require.Positive(t, grown)
	require.Positive(t, shrunk)
}
