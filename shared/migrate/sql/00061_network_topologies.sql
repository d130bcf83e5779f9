-- +goose Up

-- Networks as they were described, and the ways that the channels of applications take in them.
create table network_topologies (
    name       text primary key,
    document   json        not null,
    updated_at timestamptz not null default now()
);
create table channels (
    application_id uuid   not null references applications (id) on delete cascade,
    position       int    not null, -- in the plan
    name           text   not null,
    source         text   not null, -- the component, with its replica
    target         text   not null,
    class          text   not null,
    bandwidth      bigint not null, -- bit/s
    max_latency    bigint not null, -- ns, 0: any
    latency        bigint not null, -- ns, of the way
    loopback       bool   not null, -- both ends are on one node
    network        text   not null, -- empty without a way
    path           text   not null, -- a given path, or the links of one, with commas
    primary key (application_id, position)
);
create index on channels (network) where network <> '';

-- +goose Down
drop table channels, network_topologies;
