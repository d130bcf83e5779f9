-- +goose Up

-- Digests of the contents that a job had before its present one: a report that gives one of them back is about a copy
-- that was listed before the content was replaced.
alter table jobs add column superseded text[] not null default '{}';

-- +goose Down
alter table jobs drop column superseded;
