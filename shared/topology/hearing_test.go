package topology_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/topology"
)

func TestDoubtsAreSentences(t *testing.T) {
	t.Parallel()
	require.Empty(t, topology.Hearing{}.Doubts())
	require.Empty(t, topology.Hearing{LostSamples: topology.Known(0), ClockSkewSeconds: topology.Known(-1.4)}.Doubts())
	require.Equal(t, []string{
		"3 of its samples of the last ten minutes were lost", "its telemetry came up to 3m0s late",
		"its clock went back, or samples came out of order, 1 times in the last ten minutes", "its clock is 1m15s behind",
	}, topology.Hearing{
		LostSamples: topology.Known(3), LateSeconds: topology.Known(180), DisorderedSamples: topology.Known(1), ClockSkewSeconds: topology.Known(-75.2),
	}.Doubts())
	require.Equal(t, []string{"its clock is 2s ahead"}, topology.Hearing{ClockSkewSeconds: topology.Known(2)}.Doubts())
}
