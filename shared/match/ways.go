package match

import (
	"cmp"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/channels"
)

// storeWays stores the ways that a plan gives the channels of an application. group is the application's in a joint problem,
// else empty.
func storeWays(tx *store.Tx, id uuid.UUID, app *appmodel.Application, p *placement.Problem, plan *placement.Plan, group string) {
	if len(app.Channels) == 0 || len(plan.Channels) != len(p.Channels) {
		return
	}
	ends := map[string]*placement.Component{}
	for i := range p.Components {
		ends[p.Components[i].ID] = &p.Components[i]
	}
	var ways []channels.Channel
	for i, ch := range p.Channels {
		from, to, way := ends[ch.From], ends[ch.To], plan.Channels[i]
		if from.Group != group {
			continue
		}
		ways = append(ways, channels.Channel{
			Name: ch.Name, Source: cmp.Or(from.Name, from.ID), Target: cmp.Or(to.Name, to.ID), Class: ch.Class,
			Bandwidth: ch.Bandwidth, MaxLatency: ch.MaxLatency, Latency: way.Latency, Loopback: way.Loopback,
			Network: way.Network, Path: way.Path,
		})
	}
	channels.Replace(tx, id, ways)
}
