-- +goose Up

-- The address of the rules API that a policy's rule was put to.
alter table policies add column rule_url text not null default '';

-- +goose Down
alter table policies drop column rule_url;
