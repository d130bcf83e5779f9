-- +goose Up

-- What was moved out of Postgres: one row per object, written by the transaction that deletes what the object holds. An
-- object without a row here is of a run that was cut off, and nobody reads it.
create table archives (
    key          text primary key,
    kind         text        not null check (kind in ('history', 'applications', 'topology')),
    first_id     text        not null,
    last_id      text        not null,
    first_entry  bigint,
    last_entry   bigint,
    lines        int         not null,
    bytes        bigint      not null,
    sha256       text        not null,
    from_at      timestamptz not null,
    to_at        timestamptz not null,
    applications uuid[]      not null,
    at           timestamptz not null default now()
);
create index archives_history_idx on archives (last_entry) where kind = 'history';
create index applications_deleted_idx on applications (deleted_at, id) where deleted_at is not null;

-- +goose Down
drop index applications_deleted_idx;
drop table archives;
