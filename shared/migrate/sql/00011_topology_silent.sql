-- +goose Up

-- When telemetry last told of nobody at all: how long a node was silent before that says nothing about the node.
alter table topology add column silent_until timestamptz;

-- +goose Down
alter table topology drop column silent_until;
