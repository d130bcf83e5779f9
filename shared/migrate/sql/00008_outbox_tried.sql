-- +goose Up

-- When somebody last began to publish an event again that had been left in the outbox.
alter table outbox add column tried_at timestamptz;

-- +goose Down
alter table outbox drop column tried_at;
