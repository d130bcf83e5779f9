// Package channels keeps the ways that the channels of applications take through the network, so that what one uses is not
// given to another.
package channels

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/store"
)

// Reserved stands for the application of what was reserved for others.
var Reserved = uuid.Max

// Channel is one as it was placed.
type Channel struct {
	Application uuid.UUID     `db:"application_id" json:"application"`
	Position    int           `db:"position"       json:"-"`
	Name        string        `db:"name"           json:"name"`
	Source      string        `db:"source"         json:"source"` // the component, with its replica if there are several
	Target      string        `db:"target"         json:"target"`
	Class       network.Class `db:"class"          json:"serviceClass"`
	Bandwidth   int64         `db:"bandwidth"      json:"bandwidthBits"`
	MaxLatency  time.Duration `db:"max_latency"    json:"maxDelayNanos,omitempty"`
	Latency     time.Duration `db:"latency"        json:"latencyNanos,omitempty"`
	Loopback    bool          `db:"loopback"       json:"loopback,omitempty"`
	Network     string        `db:"network"        json:"network,omitempty"` // empty without a way
	Path        string        `db:"path"           json:"path,omitempty"`
	Refused     bool          `db:"refused"        json:"-"` // an end has no place, since no way keeps what the channel asks for
}

const (
	deleteOf = `delete from channels where application_id = $1`

	insert = `insert into channels
(application_id, position, name, source, target, class, bandwidth, max_latency, latency, loopback, network, path,
	refused)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

	columns = `select c.application_id, c.position, c.name, c.source, c.target, c.class, c.bandwidth, c.max_latency, c.latency,
c.loopback, c.network, c.path, c.refused from channels c join applications a on a.id = c.application_id
where a.deleted_at is null`

	selectOf = columns + ` and ($1::uuid is null or c.application_id = $1) order by c.application_id, c.position`

	selectUsing = columns + ` and a.desired = 'running' and c.network <> ''
union all select 'ffffffff-ffff-ffff-ffff-ffffffffffff', 0, name, source, target, class, bandwidth, max_latency, latency,
false, network, path, false from network_reservations
order by 1, 2, 3`
)

// Replace stores the channels of an application in place of those that it had.
func Replace(tx *store.Tx, application uuid.UUID, all []Channel) {
	tx.Append(deleteOf, application)
	for i, c := range all {
		tx.Append(insert, application, i, c.Name, c.Source, c.Target, c.Class, c.Bandwidth, int64(c.MaxLatency), int64(c.Latency),
			c.Loopback, c.Network, c.Path, c.Refused)
	}
}

// Of lists the channels of an application, or of all with nil.
func Of(ctx context.Context, q store.Querier, application *uuid.UUID) ([]Channel, error) {
	return store.Collect(ctx, q, "read channels", pgx.RowToStructByName[Channel], selectOf, application)
}

// Using lists those that take bandwidth of some network, and what was reserved for others.
func Using(ctx context.Context, q store.Querier) ([]Channel, error) {
	return store.Collect(ctx, q, "read channels", pgx.RowToStructByName[Channel], selectUsing)
}

// None is for Occupied where no application is placed anew.
func None(uuid.UUID) bool { return false }

// Occupied returns the topology with what channels use taken from its media, but for those of the applications that are
// placed anew. A way that is no longer there uses nothing.
func Occupied(t *network.Topology, using []Channel, anew func(uuid.UUID) bool) *network.Topology {
	if t == nil {
		return nil
	}
	out := *t
	out.Networks, out.Pairs = make([]network.Network, len(t.Networks)), append([]network.Pair(nil), t.Pairs...)
	pairs := map[[2]string]*network.Pair{}
	for i := range out.Pairs {
		pairs[[2]string{out.Pairs[i].Source, out.Pairs[i].Target}] = &out.Pairs[i]
	}
	media := map[string]*network.Medium{}  // by network and medium
	links := map[[2]string]*network.Link{} // by network and link
	paths := map[[2]string][]string{}
	base := map[string]string{}
	for i := range t.Networks {
		n := t.Networks[i]
		n.Media = append([]network.Medium(nil), n.Media...)
		out.Networks[i] = n
		base[n.ID] = n.Base
		for k := range n.Media {
			media[n.ID+"\n"+n.Media[k].ID] = &n.Media[k]
		}
		for k := range n.Links {
			links[[2]string{n.ID, n.Links[k].ID}] = &n.Links[k]
		}
		for _, p := range n.Paths {
			paths[[2]string{n.ID, p.ID}] = p.Links
		}
	}
	for _, c := range using {
		if anew(c.Application) {
			continue
		}
		way, given := paths[[2]string{c.Network, c.Path}]
		if !given {
			way = strings.Split(c.Path, ",")
		}
		first, last := links[[2]string{c.Network, way[0]}], links[[2]string{c.Network, way[len(way)-1]}]
		if first != nil && last != nil && pairs[[2]string{first.Source, last.Target}] != nil {
			pairs[[2]string{first.Source, last.Target}].Used += c.Bandwidth
		}
		for _, id := range way {
			l := links[[2]string{c.Network, id}]
			if l == nil {
				continue
			}
			below := c.Network
			for steps := 0; media[below+"\n"+l.Medium] == nil && base[below] != "" && steps < len(base); steps++ {
				below = base[below]
			}
			if m := media[below+"\n"+l.Medium]; m != nil {
				m.Used += c.Bandwidth
			}
		}
	}
	return &out
}
