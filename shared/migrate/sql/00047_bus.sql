-- +goose Up

-- What has been published: the last value of each key, or that there is none any more. Whoever changes a key takes the next
-- number under a lock, so numbers become visible in their order and a reader can go on after the last one that it has seen.
create sequence bus_numbers;
create table bus_values (
    key      text collate "C" primary key,
    number   bigint      not null,
    at       timestamptz not null,
    deleted  bool        not null,
    encoding text        not null,
    payload  bytea       not null
);
create unique index bus_values_number on bus_values (number);

-- Up to which number keys that have no value any more may have been forgotten.
create table bus_forgotten (
    singleton bool primary key default true check (singleton),
    number    bigint not null
);

-- +goose Down
drop table bus_forgotten, bus_values;
drop sequence bus_numbers;
