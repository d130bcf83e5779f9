-- +goose Up
-- Subscriptions that are told only now and then, or only of exact positions: what was told last of each user, and when.
alter table mec_subscriptions add column seen jsonb not null default '{}', add column told_at timestamptz;

-- +goose Down
alter table mec_subscriptions drop column seen, drop column told_at;
