package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/placement"
)

const small = `{"components": [{"cpu": 1000, "memory": 10}, {"cpu": 1000, "memory": 10}],
"nodes": [{"cluster": 0, "cpu": 1000, "memory": 20}, {"cluster": 1, "cpu": 1000, "memory": 20}],
"score": [[5, 1], [5, 2]], "lan": [{"bandwidth": 10, "latency": 1}, {"bandwidth": 10, "latency": 1}],
"media": [{"bandwidth": 5}], "paths": [{"from": 0, "to": 1, "media": [0], "latency": 7}],
"channels": [{"from": 0, "to": 1, "bandwidth": 5, "latency": 9}]}`

func TestMeasure(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "small.json")
	require.NoError(t, os.WriteFile(file, []byte(small), 0o600))
	r, err := measure(file, 0, 1, false)
	require.NoError(t, err)
	require.InDelta(t, 7, r.Objective, 0)
	require.True(t, r.Checked)
}

// best tries every placement, and every way of every channel, of an instance that is small.
func (in *instance) best() (most float64, found bool) {
	at := make([]int, len(in.Components))
	cpu, memory := make([]int64, len(in.Nodes)), make([]int64, len(in.Nodes))
	lans, media := make([]int64, len(in.LAN)), make([]int64, len(in.Media))
	var route func(i int) bool
	carry := func(from, to int, ways []int, by int64) (fits bool) {
		lans[from] += by
		if from != to {
			lans[to] += by
		}
		fits = lans[from] <= in.LAN[from].Bandwidth && lans[to] <= in.LAN[to].Bandwidth
		for _, m := range ways {
			media[m] += by
			fits = fits && media[m] <= in.Media[m].Bandwidth
		}
		return fits
	}
	route = func(i int) bool {
		if i == len(in.Channels) {
			return true
		}
		ch := in.Channels[i]
		a, b := at[ch.From], at[ch.To]
		if a == b {
			return route(i + 1)
		}
		from, to := in.Nodes[a].Cluster, in.Nodes[b].Cluster
		ways := []path{{From: from, To: to}}
		if from != to {
			ways = in.Paths
		}
		for _, w := range ways {
			latency := in.LAN[from].Latency
			if from != to {
				latency += w.Latency + in.LAN[to].Latency
			}
			if w.From != from || w.To != to || latency > ch.Latency {
				continue
			}
			ok := carry(from, to, w.Media, ch.Bandwidth) && route(i+1)
			carry(from, to, w.Media, -ch.Bandwidth)
			if ok {
				return true
			}
		}
		return false
	}
	var put func(i int, worth float64)
	put = func(i int, worth float64) {
		if i == len(in.Components) {
			if (!found || worth > most) && route(0) {
				most, found = worth, true
			}
			return
		}
		c := in.Components[i]
		for n := range in.Nodes {
			if cpu[n]+c.CPU > in.Nodes[n].CPU || memory[n]+c.Memory > in.Nodes[n].Memory {
				continue
			}
			cpu[n], memory[n], at[i] = cpu[n]+c.CPU, memory[n]+c.Memory, n
			put(i+1, worth+in.Score[i][n])
			cpu[n], memory[n] = cpu[n]-c.CPU, memory[n]-c.Memory
		}
	}
	put(0, 0)
	return most, found
}

// TestPlansOfGeneratedNetworks compares plans with the best of all that there are: none is above it, no bound is below it, and what
// calls itself exact is it.
func TestPlansOfGeneratedNetworks(t *testing.T) {
	t.Parallel()
	exact, best, all := 0, 0, 0
	for _, family := range []string{"ring", "tree", "geometric"} {
		for seed := range uint64(14) {
			in := generate(family, 5, seed)
			for i := range in.Channels { // so much that channels are in each other's way
				in.Channels[i].Bandwidth *= 3
			}
			most, found := in.best()
			plan, err := placement.Place(in.problem())
			require.NoError(t, err)
			if !found {
				require.Less(t, plan.Placed, len(in.Components), "%s %d", family, seed)
				continue
			}
			require.GreaterOrEqual(t, plan.PlacedBound, len(in.Components), "%s %d", family, seed)
			if plan.Placed < len(in.Components) {
				continue
			}
			all++
			require.NoError(t, in.check(plan, 0), "%s %d", family, seed)
			require.LessOrEqual(t, plan.Objective, most, "%s %d", family, seed)
			require.GreaterOrEqual(t, plan.Bound, most, "%s %d", family, seed)
			if plan.Exact {
				exact++
				require.InDelta(t, most, plan.Objective, 1e-9, "%s %d", family, seed)
			}
			if plan.Objective > most-1e-9 {
				best++
			}
		}
	}
	t.Logf("of %d, %d are the best and %d are proven to be", all, best, exact)
	require.Greater(t, all, 25)
	require.Greater(t, 10*best, 9*all)
}

// TestANarrowerLinkIsPlannedAnew: what runs moves as far as it has to, no rule is left, and it takes a fifth of the work of the first
// plan at most.
func TestANarrowerLinkIsPlannedAnew(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ring:20:1", "tree:20:1", "geometric:20:2"} {
		r, err := measure(name, 0, 1, true)
		require.NoError(t, err, name)
		require.Less(t, r.Again.Moved, 6, name)
		require.LessOrEqual(t, r.Again.Work, 0.2, name)
	}
}

func TestNamesOfInstances(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ring:1:1", "tree:x:1", "geometric:5:-1", "star:5:1"} {
		_, err := measure(name, 0, 1, false)
		require.Error(t, err, name)
	}
}
