package preview

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestForesight(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Unix(0, 0).UTC().Add(time.Duration(minute) * time.Minute) }
	episode := func(host string, from, to int) Episode {
		return Episode{Labels: map[string]string{"host": host}, From: at(from), FiredAt: at(from), To: at(to)}
	}
	named := episode("a", 30, 40)
	named.Labels["__name__"] = "load"
	got := foresight([]Episode{
		episode("a", 10, 40),   // twenty minutes before the violation
		episode("b", 10, 15),   // in vain
		episode("b", 100, 110), // no earlier than the violation
		episode("c", 115, 118), // nobody knows yet
		episode("d", 50, 55),   // five minutes before, with a gap
	}, []Episode{named, episode("b", 100, 110), episode("d", 65, 70)}, 30*time.Minute, at(120))
	require.Equal(t, &Foreseen{Ahead: "30m", Violations: 3, Earlier: 2, SecondsEarlier: 20 * 60, InVain: 1, Open: 1}, got)
}
