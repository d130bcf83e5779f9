-- +goose Up
-- By what telemetry finds a node: values of labels, one on each line. Empty where a former version wrote the row; then the
-- digest differs, and the next look at all nodes writes it.
alter table topology_nodes add column identity text not null default '';

-- +goose Down
alter table topology_nodes drop column identity;
