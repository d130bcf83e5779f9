package solve_test

import (
	"context"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/littoral-project/littoral/shared/swm/solve"
	"github.com/littoral-project/littoral/shared/swm/solve/pb"
)

// answers are all that a request gets.
func answers(t *testing.T, r *pb.Request) []*pb.Reply {
	t.Helper()
	var list []*pb.Reply
	require.NoError(t, solve.Solve(t.Context(), r, func(a *pb.Reply) error {
		list = append(list, a)
		return nil
	}))
	require.NotEmpty(t, list)
	return list
}

func last(t *testing.T, r *pb.Request) *pb.Reply {
	t.Helper()
	list := answers(t, r)
	return list[len(list)-1]
}

// camera is a group of two workloads that talk, on two nodes and a link of 30 Mbit/s and 2 ms over one switch.
func camera() *pb.Request {
	amount := func(n int64) *pb.Resource { return &pb.Resource{Capacity: n} }
	link := func(from, to string) *pb.Link {
		return &pb.Link{Id: from + "-" + to, Source: from, Target: to, Medium: "cable", Latency: 1e6}
	}
	return &pb.Request{TimeLimit: 5, Model: &pb.Model{
		Infrastructure: &pb.Infrastructure{
			Nodes: []*pb.Node{
				{Id: "shore", CPU: amount(1000), Memory: amount(1 << 30), Labels: []string{"camera"}},
				{Id: "sea", CPU: amount(1000), Memory: amount(1 << 30), Labels: []string{"wet"}},
				{Id: "switch", NodeType: pb.Node_NETWORK},
			},
			Networks: []*pb.Network{{
				Id: "lan", Media: []*pb.Medium{{Id: "cable", Bandwidth: amount(30e6)}},
				Links: []*pb.Link{link("shore", "switch"), link("switch", "sea"), link("sea", "switch"), link("switch", "shore")},
				Paths: []*pb.Path{{Id: "out", Links: []string{"shore-switch", "switch-sea"}}},
			}},
		},
		AppGroup: &pb.ApplicationGroup{
			Applications: []*pb.Application{{Id: "camera", Workloads: []*pb.Workload{
				{Id: "front", CPU: 600, Memory: 1 << 20, RequiredLabels: []string{"camera"}}, {Id: "back", CPU: 600, Memory: 1 << 20},
			}}},
			Channels: []*pb.Channel{{
				Id: "frames", SourceApplication: "camera", SourceWorkload: "front", TargetApplication: "camera", TargetWorkload: "back",
				Bandwidth: 10e6, Latency: 5e6,
			}},
		},
	}}
}

func where(a *pb.Reply) map[string]string {
	at := map[string]string{}
	for _, w := range a.GetAssignment().GetWorkloads() {
		at[w.GetWorkload()] = w.GetNode()
	}
	return at
}

func TestWorkloadsAndChannelsArePlacedTogether(t *testing.T) {
	t.Parallel()
	a := last(t, camera())
	require.True(t, a.GetFeasible(), "%v", a.GetErrors())
	require.Equal(t, map[string]string{"front": "shore", "back": "sea"}, where(a), "both do not fit on one node")
	c := a.GetAssignment().GetChannels()[0]
	require.Equal(t, []string{"frames", "lan", "out", "shore", "sea"},
		[]string{c.GetChannel(), c.GetNetwork(), c.GetPath(), c.GetSource(), c.GetTarget()})
	var m solve.Message
	require.NoError(t, json.Unmarshal([]byte(a.GetMessages()), &m))
	require.True(t, m.Optimal)
	require.InDelta(t, m.Bound, m.Objective, 1e-9)
}

// TestCostsAndRecommendationsCount: the objective is what is recommended less what it costs.
func TestCostsAndRecommendationsCount(t *testing.T) {
	t.Parallel()
	r := camera()
	for _, w := range r.Model.AppGroup.Applications[0].Workloads {
		w.RequiredLabels, w.CPU = nil, 100
	}
	values := func(shore, sea float64) []*pb.Value {
		return []*pb.Value{{Node: "shore", Value: shore}, {Node: "sea", Value: sea}}
	}
	r.Model.Costs = &pb.Cost{Workloads: []*pb.CostValues{
		{Application: "camera", Workload: "front", Nodes: values(3, 7)}, {Application: "camera", Workload: "back", Nodes: values(9, 1)},
	}}
	r.Model.Recommendations = &pb.Recommendation{Workloads: []*pb.Values{{Application: "camera", Workload: "front", Nodes: values(0, 10)}}}
	a := last(t, r)
	require.Equal(t, map[string]string{"front": "sea", "back": "sea"}, where(a))
	var m solve.Message
	require.NoError(t, json.Unmarshal([]byte(a.GetMessages()), &m))
	require.InDelta(t, 10-7-1, m.Objective, 1e-9)

	r.Model.AppGroup.Applications[0].Workloads[0].Node = "shore"
	r.Options = `{"migrationPenalty": 100}`
	require.Equal(t, "shore", where(last(t, r))["front"], "a move costs more than it is worth")
	r.Options = `{"migrationPenalty": 1}`
	require.Equal(t, "sea", where(last(t, r))["front"])
}

// TestWhatCannotBeIsSaidByRule: nothing is an exception.
func TestWhatCannotBeIsSaidByRule(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*pb.Request)
		kind   string
	}{
		"labels": {func(r *pb.Request) { r.Model.Infrastructure.Nodes[0].Labels = nil }, "label"},
		"forbidden labels": {func(r *pb.Request) {
			r.Model.AppGroup.Applications[0].Workloads[0].ForbiddenLabels = []string{"camera"}
		}, "excluded"},
		"processors":            {func(r *pb.Request) { r.Model.Infrastructure.Nodes[1].CPU.Used = 500 }, "cpu"},
		"memory":                {func(r *pb.Request) { r.Model.AppGroup.Applications[0].Workloads[1].Memory = 2 << 30 }, "memory"},
		"a medium that is full": {func(r *pb.Request) { r.Model.Infrastructure.Networks[0].Media[0].Bandwidth.Used = 25e6 }, "channel"},
		"latency":               {func(r *pb.Request) { r.Model.AppGroup.Channels[0].Latency = 1e6 }, "channel"},
		"class":                 {func(r *pb.Request) { r.Model.AppGroup.Channels[0].Qos = pb.Network_ASSURED }, "channel"},
		"a fixed path that is full": {func(r *pb.Request) {
			c := r.Model.AppGroup.Channels[0]
			c.Fixed, c.Network, c.Path, c.Bandwidth = true, "lan", "out", 20e6
		}, "bandwidth"},
		"no model": {func(r *pb.Request) { r.Model = nil }, "request"},
		"no number": {func(r *pb.Request) {
			r.Model.Costs = &pb.Cost{Workloads: []*pb.CostValues{{Application: "camera", Workload: "front", Nodes: []*pb.Value{{Node: "sea", Value: math.NaN()}}}}}
		}, "request"},
		"unknown ends":    {func(r *pb.Request) { r.Model.AppGroup.Channels[0].TargetWorkload = "none" }, "request"},
		"a link nowhere":  {func(r *pb.Request) { r.Model.Infrastructure.Networks[0].Links[0].Target = "none" }, "request"},
		"options":         {func(r *pb.Request) { r.Options = "fast" }, "request"},
		"fixed nowhere":   {func(r *pb.Request) { r.Model.AppGroup.Applications[0].Workloads[0].Fixed = true }, "request"},
		"less than none":  {func(r *pb.Request) { r.Model.Infrastructure.Nodes[0].Memory.Capacity = -1 }, "request"},
		"a latency below": {func(r *pb.Request) { r.Model.Infrastructure.Networks[0].Links[0].Latency = -1 }, "request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := camera()
			row.change(r)
			a := last(t, r)
			require.False(t, a.GetFeasible())
			var kinds []string
			for _, e := range a.GetErrors() {
				kinds = append(kinds, e.GetKind())
				require.NotEmpty(t, e.GetDetails())
			}
			require.Contains(t, kinds, row.kind, "%v", a.GetErrors())
		})
	}
}

func TestAFixedChannelHoldsItsEndsAndItsBandwidth(t *testing.T) {
	t.Parallel()
	r := camera()
	for _, w := range r.Model.AppGroup.Applications[0].Workloads {
		w.RequiredLabels, w.CPU = nil, 100
	}
	c := r.Model.AppGroup.Channels[0]
	c.Fixed, c.Network, c.Path = true, "lan", "out"
	a := last(t, r)
	require.True(t, a.GetFeasible(), "%v", a.GetErrors())
	require.Equal(t, map[string]string{"front": "shore", "back": "sea"}, where(a), "they could be together, but for the channel")
	require.Equal(t, "out", a.GetAssignment().GetChannels()[0].GetPath())
}

// TestAWorkloadMayStayWhereItFillsItsNode: what it uses there does not stand in its own way.
func TestAWorkloadMayStayWhereItFillsItsNode(t *testing.T) {
	t.Parallel()
	r := camera()
	r.Model.AppGroup.Applications[0].Workloads[0].Node = "shore"
	r.Model.Infrastructure.Nodes[0].CPU.Used = 600
	a := last(t, r)
	require.True(t, a.GetFeasible(), "%v", a.GetErrors())
	require.Equal(t, "shore", a.GetAssignment().GetWorkloads()[0].GetOldNode())
}

// TestAnswersImprove: none is worse than the one before.
func TestAnswersImprove(t *testing.T) {
	t.Parallel()
	r := camera()
	group := r.Model.AppGroup
	group.Channels = nil
	r.Model.Costs = &pb.Cost{}
	for i := range 40 {
		id := string(rune('a'+i%26)) + string(rune('a'+i/26))
		group.Applications[0].Workloads = append(group.Applications[0].Workloads, &pb.Workload{Id: id, CPU: int32(10 + i*7%23), Memory: 1 << 20})
		r.Model.Costs.Workloads = append(r.Model.Costs.Workloads, &pb.CostValues{Application: "camera", Workload: id, Nodes: []*pb.Value{
			{Node: "shore", Value: float64(i * 31 % 17)}, {Node: "sea", Value: float64(i * 13 % 19)},
		}})
	}
	before := math.Inf(-1)
	for _, a := range answers(t, r) {
		var m solve.Message
		require.NoError(t, json.Unmarshal([]byte(a.GetMessages()), &m))
		require.GreaterOrEqual(t, m.Objective, before-1e-9)
		require.GreaterOrEqual(t, m.Bound, m.Objective-1e-9)
		before = m.Objective
	}
}

func FuzzSolve(f *testing.F) {
	seed, err := proto.Marshal(camera())
	require.NoError(f, err)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, wire []byte) {
		r := new(pb.Request)
		if proto.Unmarshal(wire, r) != nil {
			return
		}
		r.Options, r.TimeLimit = `{"budget": 1000}`, 1
		answered := false
		_ = solve.Solve(context.Background(), r, func(*pb.Reply) error {
			answered = true
			return nil
		})
		require.True(t, answered)
	})
}
