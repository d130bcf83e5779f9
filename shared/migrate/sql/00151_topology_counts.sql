-- +goose Up
-- How many series of each metric the last look has seen, as shared/topology/collect writes it, so that the next one need not ask
-- telemetry what was then. They count only if they are of the moment of the topology: a former version stores that without them.
alter table topology add column counts json, add column counted_at timestamptz;

-- +goose Down
alter table topology drop column counts, drop column counted_at;
