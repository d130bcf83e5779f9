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

-- What expressions of Cypher mean for values of JSON. They are functions so that a query names each operand once; Postgres puts
-- their bodies in their place where that is cheap.

-- +goose StatementBegin
create function mdm_number(v jsonb) returns numeric language sql immutable parallel safe as
    $$ select case when jsonb_typeof(v) = 'number' then v::numeric end $$;
create function mdm_text(v jsonb) returns text language sql immutable parallel safe as
    $$ select case when jsonb_typeof(v) = 'string' then v #>> '{}' end $$;
create function mdm_true(v jsonb) returns boolean language sql immutable parallel safe as
    $$ select case when jsonb_typeof(v) = 'boolean' then v::boolean end $$;
create function mdm_parsed(v jsonb) returns numeric language sql immutable parallel safe as
    $$ select case when jsonb_typeof(v) = 'number' then v::numeric
        when jsonb_typeof(v) = 'string' and v #>> '{}' ~ '^ *-?[0-9]{1,30}([.][0-9]{1,30})? *$' then (v #>> '{}')::numeric end $$;
create function mdm_compare(l jsonb, r jsonb) returns int language sql immutable parallel safe as
    $$ select case when jsonb_typeof(l) = jsonb_typeof(r) and jsonb_typeof(l) in ('number', 'string', 'boolean')
        then case when l < r then -1 when l > r then 1 else 0 end end $$;
create function mdm_plus(l jsonb, r jsonb) returns jsonb language sql immutable parallel safe as
    $$ select case jsonb_typeof(l) || '+' || jsonb_typeof(r)
        when 'number+number' then to_jsonb(l::numeric + r::numeric)
        when 'array+array' then l || r
        when 'string+string' then to_jsonb((l #>> '{}') || (r #>> '{}'))
        when 'string+number' then to_jsonb((l #>> '{}') || (r #>> '{}'))
        when 'number+string' then to_jsonb((l #>> '{}') || (r #>> '{}')) end $$;
create function mdm_quotient(l numeric, r numeric) returns numeric language sql immutable parallel safe as
    $$ select case when scale(l) = 0 and scale(r) = 0 then trunc(l / r) else trim_scale(l / r) end $$;
create function mdm_at(v jsonb, i jsonb) returns jsonb language sql immutable parallel safe as
    $$ select nullif(case jsonb_typeof(i)
        when 'number' then case when scale(i::numeric) = 0 and abs(i::numeric) < 1000000 then v -> i::int end
        when 'string' then v -> (i #>> '{}') end, 'null') $$;
create function mdm_size(v jsonb) returns int language sql immutable parallel safe as
    $$ select case jsonb_typeof(v) when 'array' then jsonb_array_length(v) when 'string' then length(v #>> '{}') end $$;
create function mdm_in(v jsonb, list jsonb) returns boolean language sql immutable parallel safe as
    $$ select case when jsonb_typeof(list) = 'array' then v in (select nullif(x, 'null') from jsonb_array_elements(list) x) end $$;
create function mdm_matches(v text, pattern text) returns boolean language sql immutable parallel safe as
    $$ select case when starts_with(pattern, '(?i)') then v ~* ('^(?:' || substr(pattern, 5) || ')$') else v ~ ('^(?:' || pattern || ')$') end $$;
create function mdm_ends(v text, suffix text) returns boolean language sql immutable parallel safe as
    $$ select right(v, length(suffix)) = suffix $$;
create function mdm_keys(v jsonb) returns jsonb language sql immutable parallel safe as
    $$ select case when jsonb_typeof(v) = 'object' then (select coalesce(jsonb_agg(k order by k), '[]') from jsonb_object_keys(v) k) end $$;
create function mdm_map(v jsonb) returns jsonb language sql immutable parallel safe as
    $$ select case when jsonb_typeof(v) = 'object' then v end $$;
create function mdm_written(v jsonb) returns text language sql immutable parallel safe as
    $$ select case when jsonb_typeof(v) in ('string', 'number', 'boolean') then v #>> '{}' end $$;
-- +goose StatementEnd

-- +goose Down
drop function mdm_number, mdm_text, mdm_true, mdm_parsed, mdm_compare, mdm_plus, mdm_quotient, mdm_at, mdm_size, mdm_in, mdm_matches, mdm_ends,
    mdm_keys, mdm_map, mdm_written;
drop table mdm_schemas, mdm_connectors, mdm_tombstones, mdm_relations, mdm_entities;
