package contracts_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

type closed struct {
	Cluster, Node, Author string
	Drain                 bool
	Components            []struct{ Name, Component string }
}

func (w *world) see(t testing.TB, id string) group {
	t.Helper()
	return decode[group](t, w.viewer.get(t, "/jobmanager/groups/"+id))
}

// TestCordon: a closed node gets nothing new, what runs there stays, and it is open again afterwards.
func TestCordon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _ := w.running(t, freeShop)
	at := g.Jobs[0].Targets
	node := "/matchmaker/nodes/" + at.Cluster + "/" + at.Node
	w.operator.call(t, http.MethodPut, node+"/cordon", "").is(t, http.StatusOK)
	list := decode[[]closed](t, w.viewer.get(t, "/matchmaker/nodes"))
	require.Len(t, list, 1)
	require.False(t, list[0].Drain)
	require.NotEmpty(t, list[0].Author)
	require.Len(t, list[0].Components, 1)
	require.Equal(t, at, w.see(t, g.ID).Jobs[0].Targets)

	second := w.submit(t, freeShop)
	require.NotEqual(t, at, second.Jobs[0].Targets, "a closed node gets nothing new")
	require.NotEmpty(t, second.Jobs[0].Targets.Node)
	// An update may look at all components again, and this one still fits where it is.
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, freeShop+"description: again\n").is(t, http.StatusOK)
	require.Equal(t, at, w.see(t, g.ID).Jobs[0].Targets)

	w.operator.call(t, http.MethodPut, node+"/uncordon", "").is(t, http.StatusOK)
	require.Empty(t, decode[[]closed](t, w.viewer.get(t, "/matchmaker/nodes")))
	require.Equal(t, at, w.submit(t, freeShop).Jobs[0].Targets)
	w.unchanged(t, func() {
		w.operator.call(t, http.MethodPut, "/matchmaker/nodes/hub/nowhere/cordon", "").refused(t, http.StatusNotFound)
		w.operator.call(t, http.MethodPut, node+"/drain?deadline=soon", "").refused(t, http.StatusBadRequest)
	})
}

// TestDrain: what has another place moves; what has none stays until the deadline, and stays for good if the node is opened.
func TestDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	free, _ := w.running(t, freeShop)
	at := free.Jobs[0].Targets
	node := "/matchmaker/nodes/" + at.Cluster + "/" + at.Node
	w.operator.call(t, http.MethodPut, node+"/drain", "").is(t, http.StatusOK)
	moved := w.see(t, free.ID).Jobs[0].Targets
	require.NotEqual(t, at, moved)
	require.NotEmpty(t, moved.Node)
	w.operator.call(t, http.MethodPut, node+"/uncordon", "").is(t, http.StatusOK)

	fixed, _ := w.running(t, hubShop)
	home := fixed.Jobs[0].Targets
	node = "/matchmaker/nodes/" + home.Cluster + "/" + home.Node
	w.operator.call(t, http.MethodPut, node+"/drain", "").is(t, http.StatusOK)
	require.Equal(t, home, w.see(t, fixed.ID).Jobs[0].Targets, "it has nowhere to go")
	require.Equal(t, "Degraded", w.see(t, fixed.ID).Status)
	w.operator.call(t, http.MethodPut, node+"/uncordon", "").is(t, http.StatusOK)
	require.Equal(t, "Available", w.see(t, fixed.ID).Status)

	w.operator.call(t, http.MethodPut, node+"/drain?deadline=0s", "").is(t, http.StatusOK)
	require.Equal(t, home, w.see(t, fixed.ID).Jobs[0].Targets)
	require.NoError(t, w.Broker.TickOne(t.Context(), "jobmanager-displace"))
	require.Empty(t, w.see(t, fixed.ID).Jobs[0].Targets.Node, "the time is over")
}

type outcome struct {
	Moves, Losers, Arrivals []struct {
		Name, Component, Why string
		From, To             *target
	}
	Plan          *struct{ Changes int }
	Before, After struct{ Nodes int }
	Looked        int
}

// TestWhatIf: it says what the real thing would do, and does nothing.
func TestWhatIf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	free, _ := w.running(t, freeShop)
	w.running(t, hubShop)
	at := free.Jobs[0].Targets
	name := at.Cluster + "/" + at.Node
	ask := func(q body) (o outcome) {
		w.unchanged(t, func() {
			o = decode[outcome](t, w.viewer.send(t, http.MethodPost, "/matchmaker/whatif", q).is(t, http.StatusOK))
		})
		return o
	}
	o := ask(body{"drain": []string{name}})
	require.Equal(t, o.Before.Nodes-1, o.After.Nodes)
	moved := false
	for _, m := range o.Moves {
		require.Equal(t, at.Node, m.From.Node)
		require.NotEqual(t, at.Node, m.To.Node)
		moved = moved || m.Name == "shop"
	}
	require.True(t, moved)

	o = ask(body{"cut": []string{"hub"}})
	require.NotEmpty(t, o.Losers, "nowhere else is what is fixed there")
	for _, l := range o.Losers {
		require.Nil(t, l.To)
	}
	o = ask(body{"descriptor": hubStoreAlone()})
	require.Len(t, o.Arrivals, 1)
	require.Equal(t, 1, o.Plan.Changes)
	o = ask(body{"drain": []string{"hub/hub-1"}, "descriptor": hubStoreAlone()})
	require.Empty(t, o.Arrivals, "the node that it is for is not there then")

	w.unchanged(t, func() {
		d := w.viewer.send(t, http.MethodPost, "/matchmaker/whatif", body{
			"drain": []string{"nowhere"}, "cut": []string{"none"}, "set": body{name: body{"colour": 1}},
		}).refused(t, http.StatusUnprocessableEntity)
		require.Len(t, d.Errors, 3, "all faults at once")
	})
}

func hubStoreAlone() string { return "name: store\ncomponents:\n" + hubStore }
