-- +goose Up

-- Addresses that Ipams ask for. Postgres itself keeps two from having one in common.
create table ipams (
    namespace    text        not null,
    name         text        not null,
    addresses    bigint      not null, -- how many it asks for
    code         text        not null default 'REQUESTED',
    cidr         cidr,                 -- what it has
    error        text        not null default '',
    requested_at timestamptz not null default now(),
    primary key (namespace, name),
    exclude using gist (cidr inet_ops with &&)
);
insert into ipams (namespace, name, addresses)
select namespace, name, (document->'spec'->>'numberOfAddresses')::bigint from swm_objects where kind = 'Ipam';

-- By which interface, and with which address, a node is on a network, as NetworkEndpoints say it. Where two speak of the same, the
-- first one counts.
create view node_interfaces as
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
order by node, network, e.namespace, e.name;

-- Where the channels of an application enter and leave networks since their ways changed last, and where they did before.
create table channel_ends (
    application_id uuid not null references applications (id) on delete cascade,
    network        text not null,
    node           text not null,
    interface      text not null, -- empty: none does any more
    former         text not null, -- the interface before; empty: none did
    primary key (application_id, network, node)
);

-- +goose Down
drop table channel_ends;
drop view node_interfaces;
drop table ipams;
