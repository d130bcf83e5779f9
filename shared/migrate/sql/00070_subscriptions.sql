-- +goose Up

-- Who takes which events, as the Triggers say it: an event leaves the outbox when all of these have it. An empty type stands for
-- every type, and an empty consumer for consumers that are not known yet. Without any row, what the Broker says is enough.
create table subscriptions (
    consumer   text  not null,
    type       text  not null,
    attributes jsonb not null default '{}', -- that an event must have besides its type
    primary key (consumer, type, attributes)
);

-- How often a Broker has accepted an event that was sent again: the next time is later each time.
alter table outbox add column accepted smallint not null default 0;

-- Events wait here for their consumers now, so the table is no longer nearly empty when somebody looks for what is overdue.
create index outbox_due_idx on outbox (coalesce(tried_at, created_at));

-- +goose Down
drop index outbox_due_idx;
alter table outbox drop column accepted;
drop table subscriptions;
