-- +goose Up

-- How well a node is heard: what of its telemetry is missing, late or out of order, and its clock.
alter table topology_nodes add column hearing json;

-- +goose Down
alter table topology_nodes drop column hearing;
