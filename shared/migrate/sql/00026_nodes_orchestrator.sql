-- +goose Up

-- Whose places an agent serves tells which orchestrator it speaks to. Until a node is seen again that is not known.
alter table nodes add column orchestrator text not null default '';

-- +goose Down
alter table nodes drop column orchestrator;
