-- +goose Up

-- Bandwidth that somebody other than an application of ours has been promised.
create table network_reservations (
    name        text        primary key,
    source      text        not null, -- nodes
    target      text        not null,
    class       text        not null,
    bandwidth   bigint      not null, -- bit/s
    max_latency bigint      not null, -- ns, 0: any
    latency     bigint      not null, -- ns, of the way
    network     text        not null,
    path        text        not null,
    updated_at  timestamptz not null default now()
);

-- +goose Down
drop table network_reservations;
