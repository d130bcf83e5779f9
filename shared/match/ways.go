package match

import (
	"cmp"
	"fmt"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/channels"
	"github.com/littoral-project/littoral/shared/swm/endpoints"
)

// storeWays stores the ways that a plan gives the channels of an application. group is the application's in a joint problem,
// else empty. A channel whose ends stay though no way keeps what it asks for goes on over the one that it has. others are the
// channels, in words, that go another way though their ends stay: nothing else would tell of them.
func (inv *inventory) storeWays(
	tx *store.Tx, id uuid.UUID, app *appmodel.Application, p *placement.Problem, plan *placement.Plan, group string,
) (others []string) {
	if len(app.Channels) == 0 || len(plan.Channels) != len(p.Channels) {
		return nil
	}
	ends := map[string]end{}
	for i := range p.Components {
		ends[p.Components[i].ID] = end{&p.Components[i], &plan.Assignments[i]}
	}
	had := inv.waysOf(id)
	var ways []channels.Channel
	var at []endpoints.At
	for i, ch := range p.Channels {
		from, to, way := ends[ch.From], ends[ch.To], plan.Channels[i]
		if from.Group != group {
			continue
		}
		c := channels.Channel{
			Name: ch.Name, Source: cmp.Or(from.Name, from.ID), Target: cmp.Or(to.Name, to.ID), Class: ch.Class,
			Bandwidth: ch.Bandwidth, MaxLatency: ch.MaxLatency, Latency: way.Latency, Loopback: way.Loopback,
			Network: way.Network, Path: way.Path,
		}
		if former, there := had[[3]string{c.Name, c.Source, c.Target}]; there && from.remains() && to.remains() {
			switch {
			case !way.Routed:
				c.Network, c.Path, c.Latency = former.Network, former.Path, former.Latency
			case c.Network != former.Network || c.Path != former.Path:
				others = append(others, fmt.Sprintf("channel %s from %s to %s by %s over %s instead of %s over %s",
					c.Name, c.Source, c.Target, c.Path, c.Network, former.Path, former.Network))
			}
		}
		c.Refused = from.refused() || to.refused()
		ways = append(ways, c)
		for _, e := range []end{from, to} {
			if e.as.Placed && c.Network != "" {
				at = append(at, endpoints.At{Network: c.Network, Node: e.as.Target.Node})
			}
		}
	}
	channels.Replace(tx, id, ways)
	endpoints.Replace(tx, id, at)
	return others
}

// waysOf are the ways that the channels of an application take now, by channel, source and target.
func (inv *inventory) waysOf(id uuid.UUID) map[[3]string]channels.Channel {
	had := map[[3]string]channels.Channel{}
	for _, c := range inv.using {
		if c.Application == id {
			had[[3]string{c.Name, c.Source, c.Target}] = c
		}
	}
	return had
}

// keepWays adds to the problem which ways the channels of an application take now. prefix is as in tie.
func (inv *inventory) keepWays(problem *placement.Problem, list []part, prefix string) {
	if len(problem.Channels) == 0 {
		return
	}
	had := map[[3]string]*placement.Way{}
	for ends, c := range inv.waysOf(instanceOf(list)) {
		had[[3]string{ends[0], prefix + ends[1], prefix + ends[2]}] = &placement.Way{Network: c.Network, Path: c.Path}
	}
	for i := range problem.Channels {
		ch := &problem.Channels[i]
		if way, runs := had[[3]string{ch.Name, ch.From, ch.To}]; runs {
			ch.Current = way
		}
	}
}

// end is where a channel begins or ends.
type end struct {
	*placement.Component
	as *placement.Assignment
}

// remains reports whether the component runs and goes on where it is.
func (e end) remains() bool { return e.Current != nil && !e.as.Moved }

// refused reports whether the component has no place since a channel gets no way.
func (e end) refused() bool {
	return e.Current == nil && !e.as.Placed && e.as.Rejections[placement.RuleChannel] > 0
}
