package plan

import (
	"cmp"
	"maps"
	"slices"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/swm/endpoints"
)

// Ends are how a channel enters and leaves its network: by which interfaces, and under which addresses, as far as NetworkEndpoints
// say it. The contract has no words for the interfaces.
type Ends struct {
	SourceIP        string `json:"sourceip,omitempty"`
	TargetIP        string `json:"targetip,omitempty"`
	SourceInterface string `json:"sourceInterface,omitempty"`
	TargetInterface string `json:"targetInterface,omitempty"`
}

// at returns where a channel enters and leaves its network; ok is false of one that does neither.
func (c *Channel) at() (from, to endpoints.At, ok bool) {
	if c.Network == "" || c.Status == Canceled || c.Status == Requested || c.Status == Rejected {
		return from, to, false
	}
	return endpoints.At{Network: c.Network, Node: c.from.Node}, endpoints.At{Network: c.Network, Node: c.to.Node}, true
}

// endsOf are those of a channel.
func endsOf(c *Channel, known map[endpoints.At]endpoints.Interface) Ends {
	from, to, ok := c.at()
	if !ok {
		return Ends{}
	}
	return Ends{known[from].Address, known[to].Address, known[from].Name, known[to].Name}
}

// endpoints adds what is to be done with interfaces of nodes: those that channels need are made ready for them, or changed where another
// one was on the network before; those that none needs any more are given up. Where no NetworkEndpoint says which interface it is there
// is nothing to do.
func (s *Status) endpoints(
	a *application.Application, all []Channel, known map[endpoints.At]endpoints.Interface, kept []endpoints.Kept,
) {
	needed := map[endpoints.At]bool{} // whether a channel runs there
	for i := range all {
		if from, to, ok := all[i].at(); ok {
			runs := all[i].works()
			needed[from], needed[to] = needed[from] || runs, needed[to] || runs
		}
	}
	before := map[endpoints.At]endpoints.Kept{}
	for _, k := range kept {
		before[k.At] = k
	}
	for _, at := range slices.SortedFunc(maps.Keys(needed), compare) {
		now := known[at].Name
		if now == "" {
			continue
		}
		former := before[at].Former
		if i := before[at].Interface; i != "" && i != now { // an endpoint was changed since
			former = i
		}
		action := CreateEndpoint
		if former != "" && former != now {
			action = ReconfigureEndpoint
		}
		s.do(Action{action, at.Node, at.Network + "/" + now}, Info{Done: needed[at]})
	}
	for _, k := range kept {
		if _, still := needed[k.At]; still {
			continue
		}
		left := slices.ContainsFunc(a.Jobs, func(j *job.Job) bool { return j.Node == k.Node && !j.Live() && !j.Gone() })
		s.do(Action{DeleteEndpoint, k.Node, k.Network + "/" + cmp.Or(k.Interface, k.Former)}, Info{Done: !left})
	}
}

func compare(a, b endpoints.At) int {
	return cmp.Or(cmp.Compare(a.Network, b.Network), cmp.Compare(a.Node, b.Node))
}
