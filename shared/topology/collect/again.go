package collect

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/littoral-project/littoral/shared/label"
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

// recall makes the hosts that were read of what is stored, as identify has made them, and returns where each is listed.
func (b *builder) recall(before *topology.KnownNodes) (all []place) {
	b.hosts, b.hostBy, b.nodeBy = nil, index[host]{}, index[host]{}
	for _, c := range b.clusters {
		for node, n := range before.Cluster[c.key].Node {
			by := n.Identity
			h := &host{
				in: c, id: n.UUID, name: by.HostName, controller: by.Controller, ip: by.IP, hostname: by.Hostname, of: by.Cluster,
				seen: n.LastSeen, Node: n,
			}
			b.addHost(h)
			all = append(all, place{host: h, cluster: c.key, node: node})
		}
	}
	b.nameNodes()
	return all
}

// recallClusters makes the clusters that are stored, as identify has made them.
func (b *builder) recallClusters(before *topology.KnownNodes) {
	for key, stored := range before.Cluster {
		b.addCluster(&cluster{key: key, uuid: stored.UUID, agent: stored.AgentID})
	}
	slices.SortFunc(b.clusters, func(a, b *cluster) int { return cmp.Compare(a.key, b.key) })
}

// called are the nodes that the glance names, with all others that the same labels name.
func (l *pass) called(g *glance) (c topology.Called) {
	c.Series = slices.Collect(maps.Keys(g.ask))
	clusters, ids, names := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for name, samples := range g.changed {
		for _, s := range samples {
			switch findBy(name) {
			case byScanner:
				names[s.Labels["agent_hostname"]] = true
			case byNode:
				names[s.Labels["node"]] = true
			case byItsCluster:
				if in := l.b.clusterOf(s.Labels); in != nil {
					clusters[in.key] = true
				}
			case byItsHost:
				ids[s.Labels[label.Host]], names[s.Labels[label.HostName]] = true, true
			}
		}
	}
	c.Clusters, c.IDs, c.Names = words(clusters), words(ids), words(names)
	return c
}

// alike are all nodes that a series may be taken for that is about one of these.
func alike(places []place) topology.Called {
	ids, names := map[string]bool{}, map[string]bool{}
	for _, p := range places {
		ids[p.id] = true
		for _, name := range []string{p.Name, p.node, p.name, p.hostname} {
			names[name] = true
		}
	}
	return topology.Called{Clusters: []string{}, Series: []int64{}, IDs: words(ids), Names: words(names)}
}

func words(all map[string]bool) []string {
	delete(all, "") // nothing is called so
	return slices.AppendSeq([]string{}, maps.Keys(all))
}

// again asks about the nodes that the glance names, where there are those that were there before, and stores them. ok is
// false if these are too many for that. Of the other nodes it reads only those that a series could be taken for as well.
func (l *pass) again(ctx context.Context, db *store.DB, g *glance) (changed, ok bool, err error) {
	if len(g.ask) > chunk {
		return false, false, nil
	}
	l.b.recallClusters(l.before)
	if err := l.before.Read(ctx, db, l.called(g)); err != nil {
		return false, false, err
	}
	found := l.b.recall(l.before)
	named := l.named(g)
	found = slices.DeleteFunc(found, func(p place) bool { return !g.ask[p.Series] && !named[p.host] })
	if len(found) > chunk {
		return false, false, nil
	}
	keys := make([][2]string, len(found))
	wanted := make(map[[2]string]bool, len(found))
	for i, p := range found {
		keys[i] = [2]string{p.cluster, p.node}
		wanted[keys[i]] = true
	}
	if err := l.before.Read(ctx, db, alike(found)); err != nil {
		return false, false, err
	}
	places := slices.DeleteFunc(l.b.recall(l.before), func(p place) bool { return !wanted[[2]string{p.cluster, p.node}] })
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
