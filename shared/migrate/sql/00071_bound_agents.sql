-- +goose Up

-- Agents that have polled with a token bound to them. From then on nobody acts as one of them with a token of no agent.
create table if not exists bound_agents (
    agent text        primary key,
    since timestamptz not null default now()
);

-- +goose Down
drop table bound_agents;
