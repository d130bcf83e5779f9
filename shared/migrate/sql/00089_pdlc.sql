-- +goose Up

-- What is known of nodes beyond their telemetry (CODECO's PDLC): profiles that people added to those that are always there, the
-- metrics that formulas may name, and the scores that came of them. share is the score as a share of the best node's; without a
-- score, why says what is missing.
create table pdlc_profiles (
    name       text primary key,
    formula    text        not null,
    about      text        not null default '',
    created_by text        not null,
    updated_at timestamptz not null default now()
);
create table pdlc_nodes (
    cluster text        not null,
    node    text        not null,
    metrics jsonb       not null,
    at      timestamptz not null,
    primary key (cluster, node)
);
create table pdlc_scores (
    profile text        not null,
    cluster text        not null,
    node    text        not null,
    score   float8,
    share   float8      not null,
    why     text        not null default '',
    at      timestamptz not null,
    primary key (profile, cluster, node)
);

-- +goose Down
drop table pdlc_scores, pdlc_nodes, pdlc_profiles;
