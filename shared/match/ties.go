package match

import (
	"fmt"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/clusterlink"
	"github.com/littoral-project/littoral/shared/placement"
)

// tie adds to the problem what the parts of an application have to do with each other: who is better close to whom, what
// they send each other, and how they must be spread. prefix stands before the ids of the parts in the problem.
//
// Over a network that the problem knows, channels take routes. Without one, their limits are those of the pair: a
// cluster keeps them, and between clusters only a link proves them, of which none is known either.
func tie(problem *placement.Problem, app *appmodel.Application, list []part, prefix string) {
	byName := map[string][]string{} // component -> ids of its parts
	for _, p := range list {
		byName[p.component.Name] = append(byName[p.component.Name], prefix+p.id)
	}
	near := pairs(app)
	for i, a := range list { // in the order of the parts, so that the problem is the same each time
		for _, b := range list[i+1:] {
			if near[pairOf(a.component.Name, b.component.Name)] {
				problem.Affinities = append(problem.Affinities, placement.Affinity{
					A: prefix + a.id, B: prefix + b.id, Weight: placement.DefaultAffinityWeight,
				})
			}
		}
	}
	for i := range app.Channels {
		ch := &app.Channels[i]
		if !app.Has(ch) {
			continue // it ends in another application, which is not of this problem
		}
		for _, from := range byName[ch.From] {
			for _, to := range byName[ch.To.Component] {
				send(problem, ch, from, to)
			}
		}
	}
	for _, s := range app.Spreads {
		var members []string
		for _, name := range s.Components {
			members = append(members, byName[name]...)
		}
		problem.Spreads = append(problem.Spreads, placement.Spread{
			Components: members, By: s.By, Max: s.Max, MaxShare: s.MaxShare,
		})
	}
}

// link keeps the parts that talk to each other where a link can be made, if any are. prefix is as in tie. A client is tied to no
// server of which there are several replicas, since one is enough.
func (inv *inventory) link(problem *placement.Problem, app *appmodel.Application, list []part, prefix string) {
	if !inv.linked {
		return
	}
	problem.Peers = inv.peers
	byName := map[string][]string{}
	for _, p := range list {
		byName[p.component.Name] = append(byName[p.component.Name], prefix+p.id)
	}
	for _, pair := range clusterlink.Needed(app) {
		servers := byName[pair[1]]
		if len(servers) != 1 {
			continue
		}
		for _, client := range byName[pair[0]] {
			problem.Affinities = append(problem.Affinities, placement.Affinity{A: client, B: servers[0], NeedsLink: true})
		}
	}
}

// send adds what a channel sends from one part to another.
func send(problem *placement.Problem, ch *appmodel.Channel, from, to string) {
	switch {
	case from == to:
	case problem.Network != nil:
		problem.Channels = append(problem.Channels, placement.Channel{
			ID: fmt.Sprintf("%s from %s to %s", ch.Name, from, to), Name: ch.Name, From: from, To: to,
			Bandwidth: ch.Bandwidth, MaxLatency: ch.MaxLatency, Class: ch.Class,
		})
	case ch.Bandwidth > 0 || ch.MaxLatency > 0:
		problem.Affinities = append(problem.Affinities, placement.Affinity{
			A: from, B: to, Bandwidth: ch.Bandwidth, MaxLatency: ch.MaxLatency,
		})
	}
}

// pairs returns the components that are better close to each other: one that needs a service and the one that offers it,
// and the two ends of a channel.
func pairs(app *appmodel.Application) map[[2]string]bool {
	offers := map[string][]string{} // service -> components
	for i := range app.Components {
		c := &app.Components[i]
		for _, service := range c.Communication.Outgoing {
			offers[service] = append(offers[service], c.Name)
		}
		for _, m := range c.Manifests {
			if m.Kind == "Service" {
				offers[m.Name] = append(offers[m.Name], c.Name)
			}
		}
	}
	near := map[[2]string]bool{}
	for i := range app.Components {
		c := &app.Components[i]
		for _, service := range c.Communication.Incoming {
			for _, other := range offers[service] {
				if other != c.Name {
					near[pairOf(c.Name, other)] = true
				}
			}
		}
	}
	for i := range app.Channels {
		if ch := &app.Channels[i]; app.Has(ch) && ch.From != ch.To.Component {
			near[pairOf(ch.From, ch.To.Component)] = true
		}
	}
	return near
}

func pairOf(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }
