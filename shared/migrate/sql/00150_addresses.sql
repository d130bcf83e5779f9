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
drop table ipams;
