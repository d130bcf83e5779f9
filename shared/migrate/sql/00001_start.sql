-- +goose Up

-- One row per application that was handed in (ICOS: job group).
create table applications (
    id              uuid primary key,
    name            text        not null,
    description     text        not null default '',
    namespace       text        not null,
    descriptor      text        not null,
    desired         text        not null default 'running' check (desired in ('running', 'stopped', 'deleted')),
    version         bigint      not null default 1,
    owner           text        not null default '',
    idempotency_key text,
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now(),
    deleted_at      timestamptz
);
create index applications_live_idx on applications (created_at, id) where deleted_at is null;
create index applications_name_idx on applications (name) where deleted_at is null;
create unique index applications_idempotency_key_idx on applications (owner, idempotency_key);

-- One row per component and replica; it keeps its id while it moves. A row with cleans set removes the copy that the
-- job named there left behind at its former place.
create table jobs (
    id             uuid primary key,
    application_id uuid        not null references applications (id),
    component      text        not null,
    replica        int         not null default 0,
    cleans         uuid references jobs (id),
    type           text        not null check (type in ('CreateDeployment', 'DeleteDeployment', 'UpdateDeployment', 'ReplaceDeployment')),
    sub_type       text        not null default '',
    state          text        not null check (state in ('Created', 'Progressing', 'Finished', 'Degraded')),
    orchestrator   text        not null default '',
    cluster        text        not null default '',
    node           text        not null default '',
    owner_id       text        not null default '',
    epoch          bigint      not null default 0,
    lease_until    timestamptz,
    instruction    jsonb       not null,
    cpu_milli      bigint      not null default 0,
    memory_bytes   bigint      not null default 0,
    devices        text[]      not null default '{}',
    lost_after     interval    not null,
    excluded       jsonb       not null default '[]',
    resource_uuid  text        not null default '',
    resource_name  text        not null,
    conditions     jsonb       not null default '[]',
    remediations   jsonb       not null default '[]',
    created_at     timestamptz not null default now(),
    updated_at     timestamptz not null default now()
);
create unique index jobs_component_idx on jobs (application_id, component, replica) where cleans is null;
create index jobs_cleans_idx on jobs (cleans) where cleans is not null;
create index jobs_list_idx on jobs (created_at, id);
-- What an agent polls for; finished jobs are not in it, so a poll costs the same however many are stored.
create index jobs_open_idx on jobs (orchestrator, owner_id) where state = 'Created' and orchestrator <> '';
create index jobs_stale_idx on jobs (orchestrator, lease_until) where state in ('Progressing', 'Degraded');
-- What holds capacity, and what a lost node holds.
create index jobs_place_idx on jobs (cluster, node) where cluster <> '';
-- What still waits for a place.
create index jobs_unplaced_idx on jobs (application_id) where state = 'Created' and type = 'CreateDeployment' and cluster = '';

-- What happened, in order: the console, "littoral events" and an operator read it. Rows outlive their application.
create table history (
    id             bigint generated always as identity primary key,
    at             timestamptz not null default clock_timestamp(),
    application_id uuid,
    job_id         uuid,
    component      text        not null default '',
    event          text        not null,
    from_state     text        not null default '',
    to_state       text        not null default '',
    message        text        not null default '',
    cause          text        not null default '',
    trace_id       text        not null default '',
    data           jsonb
);
create index history_application_idx on history (application_id, id);

-- Events that their transaction made true and that the Broker has not accepted yet.
create table outbox (
    id         uuid primary key,
    event      json        not null,
    created_at timestamptz not null default now()
);

-- Events that a reaction has already worked off.
create table inbox (
    consumer text        not null,
    source   text        not null,
    id       text        not null,
    at       timestamptz not null default now(),
    primary key (consumer, source, id)
);

-- The infrastructure as last seen (one row), and each state of it that differed in more than its readings.
create table topology (
    singleton bool primary key default true check (singleton),
    snapshot  uuid        not null,
    taxonomy  jsonb       not null,
    at        timestamptz not null
);
create table topology_snapshots (
    id       uuid primary key,
    at       timestamptz not null default now(),
    changes  jsonb       not null,
    taxonomy jsonb       not null
);

-- When each node was last heard of and whose it is, kept after it has gone so that what ran there can be moved.
create table nodes (
    cluster     text        not null,
    node        text        not null,
    last_seen   timestamptz not null,
    schedulable bool        not null default true,
    agent       text        not null default '',
    primary key (cluster, node)
);
create index nodes_agent_idx on nodes (agent);

-- +goose Down
drop table nodes, topology_snapshots, topology, inbox, outbox, history, jobs, applications;
