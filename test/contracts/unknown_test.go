package contracts_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/test/inprocess"
)

// appCondition is what is said of an application as a whole.
type appCondition struct {
	Type, Status, Reason, Message string
	LastTransitionTime            time.Time
}

func (w *world) conditions(t testing.TB, id string) []appCondition {
	t.Helper()
	return decode[struct{ Conditions []appCondition }](t, w.viewer.get(t, "/jobmanager/groups/"+id)).Conditions
}

func (w *world) message(t testing.TB, id string) string {
	t.Helper()
	return decode[struct{ Message string }](t, w.viewer.get(t, "/jobmanager/groups/"+id)).Message
}

// hush saves a topology in which only these clusters' nodes are heard of; the others have been silent so long.
func (w *world) hush(t testing.TB, length time.Duration, heard ...string) {
	t.Helper()
	_, err := w.DB.Exec(t.Context(), `update nodes set last_seen = last_seen - interval '1 hour'`) // it never goes back otherwise
	require.NoError(t, err)
	now := time.Now()
	taxonomy := inprocess.Topology(now.Add(-length))
	for _, cluster := range heard {
		taxonomy.Cluster[cluster] = inprocess.Topology(now).Cluster[cluster]
	}
	w.SaveTopology(taxonomy)
}

// TestAnApplicationOnASilentNodeIsUnknown: nobody knows whether it runs, so nothing says that it does. When the node is
// heard of again, it is where it was.
func TestAnApplicationOnASilentNodeIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j := w.running(t, hubShop)
	other := w.submit(t, strings.ReplaceAll(hubShop, "hub-1", "hub-2")) // on no silent node
	for range 2 {
		w.silence(t, j.Targets.Node, 2*time.Minute)
		now := w.group(t, g.ID)
		require.Equal(t, "Unknown", now.Status)
		require.Regexp(t, `^web: hub/hub-1 silent for 2m\d+s, moves in (3m0|2m5\d)s$`, w.message(t, g.ID))
		said := w.conditions(t, g.ID)
		require.Len(t, said, 1)
		require.Equal(t, []string{"Available", "Unknown", "NodeSilent"}, []string{said[0].Type, said[0].Status, said[0].Reason})
		require.WithinDuration(t, time.Now().Add(-2*time.Minute), said[0].LastTransitionTime, 30*time.Second)
		require.Contains(t, said[0].Message, "hub/hub-1 silent for 2m")
		for _, c := range now.Jobs[0].Resource.Conditions {
			require.False(t, c.Type == "Available" && c.Status == "True", "its component is not shown as running either")
		}
		require.Len(t, w.messages(t, g.ID, "application.unknown"), 1, "once, however often one looks")
		require.Empty(t, w.conditions(t, other.ID))
	}
	w.silence(t, j.Targets.Node, 0)
	now := w.group(t, g.ID)
	require.Equal(t, "Available", now.Status)
	require.Equal(t, j.Targets, now.Jobs[0].Targets)
	require.Equal(t, j.Epoch, now.Jobs[0].Epoch, "it was not placed anew")
	require.Empty(t, w.conditions(t, g.ID))
	require.Len(t, w.messages(t, g.ID, "application.returned"), 1)
	require.Empty(t, w.messages(t, g.ID, "application.displaced"))
	w.legal(t)
}

func TestALostClusterIsNamedAsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _ := w.running(t, hubShop)
	w.hush(t, 2*time.Minute, "edge")
	said := w.conditions(t, g.ID)
	require.Len(t, said, 1)
	require.Equal(t, "ClusterLost", said[0].Reason)
	require.Regexp(t, `^web: all of cluster hub silent for 2m\d+s, moves in \dm\d+s$`, said[0].Message)
	require.Equal(t, "Unknown", w.group(t, g.ID).Status)

	w.hush(t, 10*time.Minute, "edge")
	require.NoError(t, w.Broker.TickOne(t.Context(), "jobmanager-displace")) // the topology has no news
	require.NoError(t, w.Broker.Drain(t.Context()))
	require.Len(t, w.messages(t, g.ID, "application.displaced"), 1)
	require.Empty(t, w.conditions(t, g.ID), "what has left is not silent any more")
	require.Empty(t, w.messages(t, g.ID, "application.returned"))
	w.legal(t)
}

// TestSilenceOfAllMovesNothing: it may be the telemetry that is away.
func TestSilenceOfAllMovesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j := w.running(t, hubShop)
	w.hush(t, 10*time.Minute)
	said := w.conditions(t, g.ID)
	require.Len(t, said, 1)
	require.Contains(t, said[0].Message, "stays while no node at all is heard of")
	require.Equal(t, j.Targets, w.group(t, g.ID).Jobs[0].Targets)
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, "").is(t, http.StatusOK)
	require.Empty(t, w.conditions(t, g.ID), "whether it runs is not asked any more")
	require.Empty(t, w.messages(t, g.ID, "application.returned"))
}
