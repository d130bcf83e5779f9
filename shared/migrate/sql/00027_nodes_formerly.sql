-- +goose Up

-- Agents that served a node before: what they own there is to be handed to the one that serves it now, whenever it is found.
alter table nodes add column formerly text[] not null default '{}';

-- +goose Down
alter table nodes drop column formerly;
