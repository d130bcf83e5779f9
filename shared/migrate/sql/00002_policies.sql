-- +goose Up

-- One row per policy. Its rule lives outside: rule_wanted counts the changes that the rule store has to follow, rule_done
-- is how far it has; rule_file is what the store calls the rule. A deleted row stays until its rule is gone.
create table policies (
    id             uuid primary key,
    instance       text        not null default '',
    name           text        not null,
    origin         text        not null check (origin in ('api', 'descriptor', 'service')),
    origin_version bigint      not null default 0,
    definition     jsonb       not null,
    rendered       jsonb,
    phase          text        not null check (phase in ('enforced', 'violated', 'inactive', 'unknown')),
    paused         bool        not null default false,
    state          jsonb       not null default '{}',
    rule_wanted    bigint      not null default 0,
    rule_done      bigint      not null default 0,
    rule_file      text        not null default '',
    version        bigint      not null default 1,
    created_at     timestamptz not null default now(),
    updated_at     timestamptz not null default now(),
    deleted_at     timestamptz
);
create unique index policies_name_idx on policies (instance, name) where deleted_at is null;
create index policies_list_idx on policies (created_at, id) where deleted_at is null;
create index policies_rule_idx on policies (id) where rule_done < rule_wanted;

-- What happened to a policy, in order.
create table policy_events (
    id        bigint generated always as identity primary key,
    policy_id uuid        not null references policies (id) on delete cascade,
    type      text        not null,
    at        timestamptz not null default clock_timestamp(),
    details   jsonb       not null default '{}'
);
create index policy_events_policy_idx on policy_events (policy_id, id);

-- Every episode end that was heard of, once: two peers that send the same hundred times leave one row. The policy may be
-- one that nobody knows.
create table policy_alerts (
    policy_id   text        not null,
    fingerprint text        not null,
    starts_at   timestamptz not null,
    status      text        not null,
    known       bool        not null,
    labels      jsonb       not null,
    received_at timestamptz not null default now(),
    primary key (policy_id, fingerprint, starts_at, status)
);
create index policy_alerts_received_idx on policy_alerts (received_at);

-- What is to be done about a violation, and what became of it. The id is the violation's: one row per episode.
create table policy_actions (
    id          uuid primary key,
    policy_id   uuid        not null,
    instance    text        not null,
    component   text        not null,
    remediation text        not null,
    status      text        not null default 'pending' check (status in ('pending', 'held', 'done', 'skipped')),
    detail      text        not null default '',
    violation   jsonb       not null,
    started_at  timestamptz not null,
    received_at timestamptz not null,
    judged_at   timestamptz not null default now(),
    held_until  timestamptz,
    acted_at    timestamptz
);
create index policy_actions_recent_idx on policy_actions (instance, component, acted_at) where status = 'done';
create index policy_actions_open_idx on policy_actions (id) where status = 'held';
create index policy_actions_policy_idx on policy_actions (policy_id);

-- +goose Down
drop table policy_actions, policy_alerts, policy_events, policies;
