-- +goose Up

-- The topology as rows, which are written when they change, instead of one document. body is the document of a cluster
-- without its nodes, and of a node; beside it are the columns that placement filters and scores by. The time of a node's
-- newest telemetry is in the table of nodes.
create table topology_clusters (
    key  text primary key,
    body json not null
);
create table topology_nodes (
    cluster_key     text        not null,
    node_key        text        not null,
    cluster         text        not null, -- the names that targets use
    node            text        not null,
    digest          bigint      not null, -- of what is no reading
    written_at      timestamptz not null,
    engine          text        not null,
    architecture    text        not null,
    schedulable     bool,
    cores           float8,
    memory          float8,               -- bytes
    gpus            float8,
    storage         float8,               -- free bytes
    cpu_percent     float8,
    memory_percent  float8,
    used_memory     float8,               -- bytes
    free_memory     float8,
    watts           float8,
    sca             float8,
    forecast_cpu    float8,               -- percent
    forecast_memory float8,
    labels          json,
    devices         json,
    pods            json,                 -- what applications use
    told            json        not null, -- what was announced of the node last
    body            json        not null,
    primary key (cluster_key, node_key)
);

-- What the topology says as a whole. It is null until the rows are written; taxonomy is what former versions read.
alter table topology add column head json;

-- +goose Down
alter table topology drop column head;
drop table topology_nodes, topology_clusters;
