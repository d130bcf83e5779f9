-- +goose Up

-- Agents that spread pods over nodes, as they were trained last, with how all of them did on worlds that they had not seen; at most
-- one is chosen, and none where a simple rule is better.
create table pdlc_agents (
    name       text primary key,
    chosen     bool        not null,
    options    jsonb       not null,
    results    jsonb       not null,
    weights    jsonb       not null,
    trained_at timestamptz not null default now()
);

-- What a model recommends for the components of an application: for each node (cluster/node) a value from 0 to 1.
create table pdlc_recommendations (
    application uuid        not null,
    component   text        not null,
    agent       text        not null,
    nodes       jsonb       not null,
    at          timestamptz not null default now(),
    primary key (application, component)
);

-- Pipelines that train models again and again. champion is the version in use, null where the naive kinds are better; former the one
-- before. training is the one that goes on.
create table pdlc_pipelines (
    name          text primary key,
    query         text        not null,
    model         text        not null unique,
    settings      jsonb       not null,
    champion      int,
    former        int,
    training      uuid,
    why           text        not null default '',
    due_at        timestamptz not null default now(),
    created_by    text        not null,
    updated_at    timestamptz not null default now()
);
create index pdlc_pipelines_training on pdlc_pipelines (training) where training is not null;

-- Models that several clusters train together: the weights of the present round, and what its participants have sent.
create table pdlc_federations (
    name       text primary key,
    plan       jsonb       not null,
    round      int         not null default 1,
    weights    jsonb       not null,
    refused    jsonb       not null default '[]', -- in the last round
    heard      int         not null default 0,    -- whose updates counted in the last round
    ends_at    timestamptz not null,
    created_by text        not null
);
create table pdlc_updates (
    federation  text        not null references pdlc_federations on delete cascade,
    round       int         not null,
    participant text        not null,
    change      jsonb       not null,
    windows     int         not null,
    at          timestamptz not null default now(),
    primary key (federation, round, participant)
);

-- +goose Down
drop table pdlc_updates, pdlc_federations, pdlc_pipelines, pdlc_recommendations, pdlc_agents;
