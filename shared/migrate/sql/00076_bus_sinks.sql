-- +goose Up

-- Brokers elsewhere that are sent what is published on the bus: up to which number each of them has it, and by what name we
-- are known there.
create table bus_sinks (
    name   text primary key,
    number bigint not null default 0,
    client uuid   not null default gen_random_uuid()
);

-- +goose Down
drop table bus_sinks;
