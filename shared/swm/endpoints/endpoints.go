// Package endpoints tells by which interfaces nodes are on networks, as NetworkEndpoints say it, and keeps which of these the channels
// of an application need, and which they needed before their ways changed last.
package endpoints

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/store"
)

// At is where a channel enters or leaves a network.
type At struct {
	Network string `db:"network"`
	Node    string `db:"node"`
}

// Interface is that of a node on a network.
type Interface struct {
	At

	Name    string `db:"interface"`
	Address string `db:"address"` // empty where none is known
}

// Kept is what channels of an application need, or have needed.
type Kept struct {
	At

	Interface string `db:"interface"` // empty: none needs it any more
	Former    string `db:"former"`    // before the ways changed last; empty: none needed it
}

const (
	// interfaces are by which interface, and with which address, a node is on a network, as NetworkEndpoints say it. Where two speak of
	// the same, the first one counts.
	interfaces = `
select distinct on (node, network) e.node as node, m.key as network, m.value as interface, coalesce(i.address, '') as address
from (
  select namespace, name, document->'spec'->>'nodeName' as node, document->'spec'->'mappedNetworkInterfaces' as mapped,
    document->'spec'->'networkInterfaces' as interfaces
  from swm_objects where kind = 'NetworkEndpoint'
) e
cross join lateral json_each_text(case json_typeof(e.mapped) when 'object' then e.mapped end) m
left join lateral (
  select coalesce(nullif(one->>'ipv4Address', ''), one->'alternateAddresses'->>0) as address
  from json_array_elements(case json_typeof(e.interfaces) when 'array' then e.interfaces end) one
  where one->>'name' = m.value limit 1
) i on true
order by node, network, e.namespace, e.name`

	selectInterfaces = `select network, node, interface, address from (` + interfaces + `) n`

	selectKept = `select network, node, interface, former from channel_ends where application_id = $1 order by network, node`

	// Where nothing has changed, what was before stays what it was.
	replace = `with needed as (
  select network, node, interface from (` + interfaces + `) i
  join (select distinct network, node from unnest($2::text[], $3::text[]) as n (network, node)) n using (network, node)
), had as (
  select network, node, interface from channel_ends where application_id = $1 and interface <> ''
), changed as (
  select 1 where exists (table needed except table had) or exists (table had except table needed)
), forgotten as (
  delete from channel_ends e using changed where e.application_id = $1 and e.interface = ''
    and not exists (select from needed n where n.network = e.network and n.node = e.node)
)
insert into channel_ends (application_id, network, node, interface, former)
select $1, network, node, coalesce(needed.interface, ''), coalesce(had.interface, '')
from needed full join had using (network, node) cross join changed
on conflict (application_id, network, node) do update set interface = excluded.interface, former = excluded.former`
)

// Read returns all interfaces on networks.
func Read(ctx context.Context, q store.Querier) (map[At]Interface, error) {
	all, err := store.Collect(ctx, q, "read the interfaces of nodes", pgx.RowToStructByName[Interface], selectInterfaces)
	if err != nil {
		return nil, err
	}
	out := make(map[At]Interface, len(all))
	for _, i := range all {
		out[i.At] = i
	}
	return out, nil
}

// Replace stores where the channels of an application are on networks in place of where they were.
func Replace(tx *store.Tx, application uuid.UUID, needed []At) {
	networks, nodes := make([]string, len(needed)), make([]string, len(needed))
	for i, at := range needed {
		networks[i], nodes[i] = at.Network, at.Node
	}
	tx.Append(replace, application, networks, nodes)
}

// Of returns what the channels of an application need, and needed before.
func Of(ctx context.Context, q store.Querier, application uuid.UUID) ([]Kept, error) {
	return store.Collect(ctx, q, "read the ends of channels", pgx.RowToStructByName[Kept], selectKept, application)
}
