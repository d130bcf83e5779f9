-- +goose Up

-- Whether L2S-M does what it is asked for: there is a row while it does not, with when it is asked again.
create table vlink_provider (
    one      boolean     primary key default true check (one),
    failures int         not null, -- in a row
    reason   text        not null,
    since    timestamptz not null default now(),
    next_at  timestamptz not null
);

-- +goose Down
drop table vlink_provider;
