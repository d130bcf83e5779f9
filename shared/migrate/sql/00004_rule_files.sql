-- +goose Up

-- Which file of an ICOS rules service holds which rule group: the service neither lists its files nor names them alike
-- for the same group.
create table rule_files (
    id         text primary key,
    file       text        not null,
    content    json        not null,
    updated_at timestamptz not null default now()
);

-- +goose Down
drop table rule_files;
