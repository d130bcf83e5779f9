-- +goose Up

-- The lighthouse's phone book: one row per address, as long as the controller there says that it is there.
create table controllers (
    address       text primary key,
    name          text not null,
    owner         text not null, -- subject of the token that registered it
    registered_at timestamptz not null default now(),
    seen_at       timestamptz not null default now()
);

-- +goose Down
drop table controllers;
