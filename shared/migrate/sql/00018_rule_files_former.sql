-- +goose Up

-- The files that a newer one of the same group has replaced, as long as the service may still have them.
alter table rule_files add column former text[] not null default '{}';

-- +goose Down
alter table rule_files drop column former;
