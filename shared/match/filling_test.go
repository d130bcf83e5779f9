package match

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFilling_saysWhatIsLeft(t *testing.T) {
	t.Parallel()
	const head = "node site/n1 will be full: the forecast of 2026-11-28T08:00:00Z says "
	f := Filling{
		Cluster: "site", Node: "n1", What: "memory", Percent: 100, Reserved: 4 << 30, Whole: 8 << 30,
		Seen: time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC),
	}
	require.Equal(t, head+"100 % of its memory, which leaves 0 B of 8 GiB for the 4 GiB that are reserved", f.String())
	f = Filling{Cluster: "site", Node: "n1", What: "cpu", Percent: 62.5, Left: 1500, Reserved: 3000, Whole: 4000, Seen: f.Seen}
	require.Equal(t, head+"62 % of its cpu, which leaves 1.5 of 4 cores for the 3 that are reserved", f.String())
}
