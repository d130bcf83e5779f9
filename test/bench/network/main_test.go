package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
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
	r, err := measure(file, 0, 1)
	require.NoError(t, err)
	require.InDelta(t, 7, r.Objective, 0)
	require.True(t, r.Checked)
}
