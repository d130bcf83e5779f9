package replan_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/netma/state"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/groups"
	"github.com/littoral-project/littoral/shared/swm/plan"
)

// endpoint says by which interface a node is on the network; the last digit of its address is that of the node's name.
func (w world) endpoint(node, wire string) {
	w.Helper()
	w.put("endpoint-"+node, fmt.Sprintf(`spec:
  nodeName: %[1]s
  networkInterfaces: [{name: lo}, {name: %[2]s, macAddress: "02:00:00:00:00:01", ipv4Address: 10.0.0.%[3]s, alternateAddresses: ["fd00::1"]}]
  mappedNetworkInterfaces: {LAN: %[2]s, OTHER: lo}`, node, wire, node[1:]))
}

func (w world) put(name, text string) {
	w.Helper()
	o, err := groups.Read(groups.Key{Kind: groups.NetworkEndpoint, Namespace: "default", Name: name}, []byte(text))
	require.NoError(w, err)
	w.Must(func(ctx context.Context, tx *store.Tx) error { return groups.Put(ctx, tx, o, groups.Settings{}) })
}

// endpoints are the actions of the plan that are about endpoints, each with whether it is done.
func (w world) endpoints(id uuid.UUID) map[plan.Action]bool {
	w.Helper()
	all := map[plan.Action]bool{}
	s := w.planned(id).Plan.Status
	for i, a := range s.Actions {
		if a.Action >= plan.CreateEndpoint {
			all[a] = s.ActionInfo[i].Done
		}
	}
	return all
}

// TestThePlanSaysWhichEndpointsItsChannelsNeed: as soon as NetworkEndpoints say which these are, and channels what they say of them.
func TestThePlanSaysWhichEndpointsItsChannelsNeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "n1", "n2", "n3")
	id := w.place()
	c, from, to := w.channel(id)
	require.Equal(t, plan.Ends{}, c.Ends, "no endpoint says")
	require.Empty(t, w.endpoints(id))

	for _, n := range []string{"n1", "n2", "n3"} {
		w.endpoint(n, "eth0")
	}
	c, _, _ = w.channel(id)
	require.Equal(t, plan.Ends{SourceIP: "10.0.0." + from[1:], TargetIP: "10.0.0." + to[1:], SourceInterface: "eth0", TargetInterface: "eth0"}, c.Ends)
	create := func(node, wire string) plan.Action {
		return plan.Action{Action: plan.CreateEndpoint, Object: node, Param: "LAN/" + wire}
	}
	require.Equal(t, map[plan.Action]bool{create(from, "eth0"): false, create(to, "eth0"): false}, w.endpoints(id))
	w.run(id)
	require.Equal(t, map[plan.Action]bool{create(from, "eth0"): true, create(to, "eth0"): true}, w.endpoints(id))
	require.Equal(t, plan.Idle, w.planned(id).Plan.Status.Phase)
}

// TestEndpointsFollowTheirChannels: they are given up where the last channel has left, and changed where another interface is on the network.
func TestEndpointsFollowTheirChannels(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "n1", "n2", "n3")
	for _, n := range []string{"n1", "n2", "n3"} {
		w.endpoint(n, "eth0")
	}
	id := w.place()
	w.run(id)
	_, from, to := w.channel(id)
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		return state.Save(ctx, tx, []links.Measurement{{
			Source: from, Target: to, Figures: links.Figures{Bandwidth: links.Known(10_000)}, MeasuredAt: time.Now(),
		}})
	})
	w.replan()
	_, from2, to2 := w.channel(id)
	left := from
	if from == from2 {
		left = to
	}
	action := func(code int, node, wire string) plan.Action {
		return plan.Action{Action: code, Object: node, Param: "LAN/" + wire}
	}
	want := map[plan.Action]bool{
		action(plan.CreateEndpoint, from2, "eth0"): false, action(plan.CreateEndpoint, to2, "eth0"): false,
		action(plan.DeleteEndpoint, left, "eth0"): false,
	}
	require.Equal(t, want, w.endpoints(id), "what leaves is still there")
	w.run(id)
	for a := range want {
		want[a] = true
	}
	require.Equal(t, want, w.endpoints(id))

	w.endpoint(from2, "eth1")
	want = map[plan.Action]bool{
		action(plan.ReconfigureEndpoint, from2, "eth1"): true, action(plan.CreateEndpoint, to2, "eth0"): true,
		action(plan.DeleteEndpoint, left, "eth0"): true,
	}
	require.Equal(t, want, w.endpoints(id))
	c, _, _ := w.channel(id)
	require.Equal(t, []string{"eth1", "eth0"}, []string{c.Ends.SourceInterface, c.Ends.TargetInterface})
	require.Equal(t, plan.Running, c.Status)

	w.put("endpoint-"+from2, "spec: {nodeName: "+from2+"}") // it is on no network any more
	c, _, _ = w.channel(id)
	require.Equal(t, plan.Ends{TargetIP: "10.0.0." + to2[1:], TargetInterface: "eth0"}, c.Ends)
	require.NotContains(t, w.endpoints(id), action(plan.ReconfigureEndpoint, from2, "eth1"))

	w.endpoint(from2, "eth1")
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		_, err := application.Stop(ctx, tx, id)
		return err
	})
	stopped := w.endpoints(id)
	require.Equal(t, false, stopped[action(plan.DeleteEndpoint, to2, "eth0")])
	require.Contains(t, stopped, action(plan.DeleteEndpoint, from2, "eth0"), "the one that was made")
	w.run(id)
	require.Equal(t, true, w.endpoints(id)[action(plan.DeleteEndpoint, to2, "eth0")])
}
