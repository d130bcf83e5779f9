-- +goose NO TRANSACTION
-- +goose Up

-- Policies can also be listed by the name of their application, which is in their definition. An interrupted attempt leaves an
-- invalid index, which is dropped first.
set lock_timeout = 0;
drop index concurrently if exists policies_app_idx;
create index concurrently policies_app_idx on policies ((definition -> 'subject' ->> 'appName')) where deleted_at is null;
reset lock_timeout;

-- +goose Down
drop index policies_app_idx;
