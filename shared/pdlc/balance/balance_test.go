package balance_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/pdlc/balance"
	"github.com/littoral-project/littoral/shared/placement"
)

var small = balance.Size{Machines: 3, Pods: 6}

func seeds(n int) (all []uint64) {
	for i := range n {
		all = append(all, uint64(1000+i))
	}
	return all
}

func TestRewardIsAsStated(t *testing.T) {
	t.Parallel()
	w := &balance.World{
		Machines: []balance.Machine{{CPU: 4, RAM: 8, UsedCPU: 2, UsedRAM: 4}, {CPU: 4, RAM: 8}},
		Pods:     []balance.Pod{{CPU: 2, RAM: 4}, {CPU: 9, RAM: 1}}, WeightCPU: 0.5,
	}
	s := w.Begin()
	require.InDelta(t, 50, s.Load(0), 1e-9, "half used is 50, not its inverse")
	require.InDelta(t, 25, s.Std(), 1e-9)
	require.InDelta(t, 50+25, s.Step(1), 1e-9, "half of the pods, and no more difference")
	require.False(t, s.Fits(0))
	require.InDelta(t, 0, s.Step(0), 1e-9, "what does not fit is left")
	require.True(t, s.Done())
	require.Equal(t, []int{1, balance.Hold}, s.At)
	require.InDelta(t, 50, s.Reward(), 1e-9)
}

func TestNobodyBeatsTheOptimum(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(10) {
		w := balance.Random(rand.New(rand.NewPCG(seed, 1)), small)
		best, greedy := balance.Optimum(w), balance.Play(w, balance.Greedy{})
		require.GreaterOrEqual(t, best.Reward(), greedy.Reward()-1e-9)
		require.LessOrEqual(t, best.Placed, mostPlaced(t, w), "the engine of placement proves how many can be placed")
		shares := balance.Recommend(w, balance.Greedy{})
		require.Len(t, shares, len(w.Pods))
		for i, row := range shares {
			for n, v := range row {
				require.True(t, v >= 0 && v <= 1, "%v", v)
				if n == greedy.At[i] {
					require.InDelta(t, 1, v, 1e-9, "what it would do itself is the best")
				}
			}
		}
	}
}

// mostPlaced is how many pods shared/placement places, which it proves to be the most.
func mostPlaced(t *testing.T, w *balance.World) int {
	t.Helper()
	var p placement.Problem
	for i, m := range w.Machines {
		p.Nodes = append(p.Nodes, placement.Node{
			Orchestrator: "o", Cluster: "c", Name: string(rune('a' + i)), CPU: int64(m.CPU * 1e6), Memory: int64(m.RAM * 1e6),
			OtherCPU: int64(m.UsedCPU * 1e6), OtherMemory: int64(m.UsedRAM * 1e6),
		})
	}
	for i, pod := range w.Pods {
		p.Components = append(p.Components, placement.Component{ID: string(rune('a' + i)), CPU: int64(pod.CPU * 1e6), Memory: int64(pod.RAM * 1e6)})
	}
	plan, err := placement.Place(p)
	require.NoError(t, err)
	require.Equal(t, plan.PlacedBound, plan.Placed)
	return plan.Placed
}

// TestAgentsLearn: each is better than before it learnt, a training can be repeated, and the choice is honest.
func TestAgentsLearn(t *testing.T) {
	t.Parallel()
	agents := map[string]balance.Agent{}
	for _, name := range balance.Names {
		o := balance.Options{Seed: 7, Episodes: 320, Size: small}
		a, err := balance.Train(t.Context(), name, o)
		require.NoError(t, err)
		agents[name] = a
		fresh, err := balance.Train(t.Context(), name, balance.Options{Seed: 7, Episodes: 1, Size: small})
		require.NoError(t, err)
		res := balance.Compare(map[string]balance.Agent{"learnt": a, "fresh": fresh}, []string{"learnt", "fresh"}, small, seeds(20), false)
		require.Greater(t, res[1].Reward, res[2].Reward-1, "%s: %+v", name, res)

		text, err := balance.Encode(a)
		require.NoError(t, err)
		again, err := balance.Train(t.Context(), name, o)
		require.NoError(t, err)
		other, err := balance.Encode(again)
		require.NoError(t, err)
		require.Equal(t, string(text), string(other), "%s is repeatable", name)
		back, err := balance.Decode(text)
		require.NoError(t, err)
		w := balance.Random(rand.New(rand.NewPCG(1, 1)), small)
		require.Equal(t, balance.Play(w, a).At, balance.Play(w, back).At)
	}
	table := balance.Compare(agents, balance.Names, small, seeds(20), true)
	for _, r := range table {
		t.Logf("%-8s std %.2f placed %.3f reward %.2f wins %d of %d", r.Agent, r.Std, r.Placed, r.Reward, r.Wins, r.Worlds)
		require.LessOrEqual(t, r.Reward, table[len(table)-1].Reward+1e-9)
	}
	t.Log("chosen:", balance.Chosen(table))
	_, err := balance.Train(t.Context(), "none", balance.Options{})
	require.Error(t, err)
	_, err = balance.Decode([]byte(`{"w": [1]}`))
	require.Error(t, err)
}
