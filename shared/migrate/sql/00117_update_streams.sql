-- +goose Up

-- Open streams of ALTO's updates, so that whoever is called to control one can tell the instance that has it. substreams are the
-- resources that it has; revision counts their changes.
create table alto_streams (
    id         uuid        primary key,
    owner      text        not null,
    substreams json        not null,
    revision   int         not null default 1,
    ends_at    timestamptz not null
);
create index on alto_streams (ends_at);

-- +goose Down
drop table alto_streams;
