-- +goose Up

-- The metadata graph. An entity is known by its edf_id, which its publisher derives from its name; id is a short number for
-- answers. event_at is the time of the last event that counted: one from before it changes nothing any more.
create table mdm_entities (
    edf_id     uuid primary key,
    id         bigint generated always as identity unique,
    type       text        not null,
    schema_ref text        not null,
    identifier text        not null,
    connector  uuid        not null,
    properties jsonb       not null,
    event_at   timestamptz not null
);
create index mdm_entities_type on mdm_entities (type, id);
create index mdm_entities_identifier on mdm_entities (identifier);
create index mdm_entities_properties on mdm_entities using gin (properties jsonb_path_ops);

-- A relation may come before its ends: it is no part of the graph until both are there.
create table mdm_relations (
    edf_id     uuid primary key,
    id         bigint generated always as identity unique,
    type       text        not null,
    schema_ref text        not null,
    source     uuid        not null,
    target     uuid        not null,
    connector  uuid        not null,
    event_at   timestamptz not null
);
create index mdm_relations_source on mdm_relations (source, type) include (target);
create index mdm_relations_target on mdm_relations (target, type) include (source);

-- What was deleted lately, so that an event from before that does not bring it back.
create table mdm_tombstones (
    edf_id   uuid primary key,
    event_at timestamptz not null,
    at       timestamptz not null default now()
);
create index mdm_tombstones_at on mdm_tombstones (at);

-- Who publishes, and how that goes.
create table mdm_connectors (
    edf_id           uuid primary key,
    type             text        not null,
    name             text        not null default '',
    interval_seconds int         not null default 300, -- between its events, at most
    events           bigint      not null default 0,
    heard_at         timestamptz,
    refused          bigint      not null default 0,
    refused_at       timestamptz,
    refusal          text        not null default ''
);

-- JSON schemas of entity types, by the URN that payloads name.
create table mdm_schemas (
    organization text        not null,
    type         text        not null,
    version      text        not null,
    schema       jsonb       not null,
    created_by   text        not null,
    updated_at   timestamptz not null default now(),
    primary key (organization, type, version)
);

-- +goose Down
drop table mdm_schemas, mdm_connectors, mdm_tombstones, mdm_relations, mdm_entities;
