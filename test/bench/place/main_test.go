package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/placement"
)

// small has room for one component on the better node; the pair is worth more than the better score.
const small = `{"components": [{"id": "a", "cpu": 2, "memory": 1}, {"id": "b", "cpu": 2, "memory": 1}],
"nodes": [{"id": "n1", "cluster": "k1", "cpu": 2, "memory": 4}, {"id": "n2", "cluster": "k2", "cpu": 4, "memory": 4}],
"score": [[90, 70], [80, 70]], "affinity": [{"a": "a", "b": "b", "weight": 30, "scope": "cluster"}]}`

func write(t *testing.T, text string) string {
	file := filepath.Join(t.TempDir(), "small.json")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	r, err := measure(write(t, small), 0, 3)
	require.NoError(t, err)
	require.True(t, r.Checked && r.Exact)
	require.InDelta(t, 170, r.Objective, 1e-9)
	_, err = measure(write(t, "{"), 0, 1)
	require.Error(t, err)
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	var in instance
	require.NoError(t, in.read([]byte(small)))
	at := func(a, b string) placement.Plan {
		clusters := map[string]string{"n1": "k1", "n2": "k2"}
		return placement.Plan{Objective: 170, Assignments: []placement.Assignment{
			{Component: "a", Placed: true, Target: placement.Target{Cluster: clusters[a], Node: a}},
			{Component: "b", Placed: true, Target: placement.Target{Cluster: clusters[b], Node: b}},
		}}
	}
	require.NoError(t, in.check(at("n2", "n2")))
	require.ErrorContains(t, in.check(at("n1", "n1")), "n1 holds 4 cores of 2")
	require.ErrorContains(t, in.check(at("n1", "n2")), "worth 160 and claims 170")
	require.ErrorContains(t, in.check(at("n1", "n9")), "b has no place")
}
