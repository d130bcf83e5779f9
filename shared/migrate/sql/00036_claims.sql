-- +goose Up

-- Who is doing something outside Postgres that only one may do at a time, such as writing the rule of a policy.
create table claims (
    key     text primary key,
    token   uuid        not null,
    ends_at timestamptz not null
);

-- +goose Down
drop table claims;
