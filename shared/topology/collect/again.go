package collect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// foundAgain reports whether the series of telemetry find the same nodes by what is stored of t as they have found by
// themselves: nothing is in t that telemetry has forgotten, and no machine has series under a former name.
func (b *builder) foundAgain(t *topology.Taxonomy) bool {
	nodes := 0
	for _, c := range t.Cluster {
		nodes += len(c.Node)
	}
	for _, former := range b.former {
		if former {
			return false
		}
	}
	return !b.leftOut && len(t.Cluster) == len(b.clusters) && nodes == len(b.hosts)
}

// recall makes the clusters and hosts that are stored, as identify has made them, and returns where each is listed.
func (b *builder) recall(before *topology.KnownNodes) (all []place) {
	for key, stored := range before.Cluster {
		c := &cluster{key: key, uuid: stored.UUID, agent: stored.AgentID}
		b.addCluster(c)
		for node, n := range stored.Node {
			by := n.Identity
			h := &host{
				in: c, id: n.UUID, name: by.HostName, controller: by.Controller, ip: by.IP, hostname: by.Hostname, of: by.Cluster,
				seen: n.LastSeen, Node: n,
			}
			b.addHost(h)
			all = append(all, place{host: h, cluster: key, node: node})
		}
	}
	slices.SortFunc(b.clusters, func(a, b *cluster) int { return cmp.Compare(a.key, b.key) })
	b.nameNodes()
	return all
}

// again asks about the nodes that the glance names, where there are those that were there before, and stores them. ok is
// false if these are too many for that.
func (l *pass) again(ctx context.Context, db *store.DB, g *glance) (changed, ok bool, err error) {
	all := l.b.recall(l.before)
	named := l.named(g)
	places := slices.DeleteFunc(all, func(p place) bool { return !g.ask[p.Series] && !named[p.host] })
	if len(places) > chunk {
		return false, false, nil
	}
	keys := make([][2]string, len(places))
	for i, p := range places {
		keys[i] = [2]string{p.cluster, p.node}
	}
	if err := l.before.Load(ctx, db, keys); err != nil {
		return false, false, err
	}
	heard := map[int64]time.Time{}
	for i, series := range g.news.Series {
		heard[series] = g.news.Seen[i]
	}
	for i := range places {
		p := &places[i]
		stored := l.before.Cluster[p.cluster].Node[p.node]
		// What the series say that name it. The rest is asked for.
		p.at = topology.Node{
			Name: stored.Name, UUID: stored.UUID, Series: stored.Series, Identity: stored.Identity, LastSeen: stored.LastSeen,
			Engine: stored.Engine, Location: stored.Location,
			StaticMetrics: topology.StaticMetrics{CPUArchitecture: stored.StaticMetrics.CPUArchitecture},
		}
		if at, news := heard[stored.Series]; news {
			p.at.LastSeen = topology.Known(float64(at.UnixMilli()) / 1000)
		}
		p.host.Node = p.at
	}
	t := *l.before.Taxonomy
	g.news.Date(&t)
	l.p.Taxonomy = &t
	l.identified, l.alone = true, true
	changed, err = l.part(ctx, db, g, places, 0, 1)
	return changed, true, err
}
