-- +goose Up

-- Nodes that an operator has closed to new components.
create table cordons (
    cluster  text        not null,
    node     text        not null,
    drain    bool        not null default false, -- what runs there has to leave
    deadline timestamptz,                        -- from then on it leaves even without another place
    since    timestamptz not null default now(),
    author   text        not null default '',
    primary key (cluster, node)
);

-- +goose Down
drop table cordons;
