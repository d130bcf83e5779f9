-- +goose Up

-- By which labels telemetry names a node, as a hash: so that a look finds the node of a series without its document. The
-- digest is of another form now, so that each row is written once.
alter table topology_nodes
    add column uuid   text   not null default '',
    add column name   text   not null default '',
    add column series bigint not null default 0;
create index on topology_nodes (series);

-- +goose Down
alter table topology_nodes drop column uuid, drop column name, drop column series;
