-- +goose Up

-- Objects of SWM as they were handed in: groups and their applications, and what describes a network in parts. uid is that of the
-- object in Kubernetes, empty for one that came over HTTP.
create table swm_objects (
    kind           text        not null,
    namespace      text        not null,
    name           text        not null,
    member_of      text        not null default '', -- of an Application: its group; of a part of a network: the network
    document       json        not null,
    uid            text        not null default '',
    application_id uuid        references applications (id) on delete set null, -- of a group: what runs its members
    updated_at     timestamptz not null default now(),
    primary key (kind, namespace, name)
);
create index on swm_objects (namespace, member_of, kind) where member_of <> '';
create index on swm_objects (application_id) where application_id is not null;

-- What a place costs a component, and how much it is recommended, by whoever knows.
create table node_costs (
    application_id uuid        not null references applications (id) on delete cascade,
    component      text        not null,
    node           text        not null,
    source         text        not null, -- who says so
    cost           float8      not null default 0, -- lower is better
    recommendation float8      not null default 0, -- higher is better
    updated_at     timestamptz not null default now(),
    primary key (application_id, component, node, source)
);

-- How often, and when last, an application was planned anew since its channels are out of QoS.
create table channel_replans (
    application_id uuid        primary key references applications (id) on delete cascade,
    times          int         not null,
    last_at        timestamptz not null
);

-- An end of the channel has no place, since no way keeps what the channel asks for.
alter table channels add column refused bool not null default false;

-- +goose Down
alter table channels drop column refused;
drop table channel_replans, node_costs, swm_objects;
