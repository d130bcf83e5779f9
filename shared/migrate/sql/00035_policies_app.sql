-- +goose NO TRANSACTION
-- +goose Up

-- The policies of an application are asked for by its name, too, which stands in what their users wrote. An attempt that was
-- cut off leaves an index that nobody may use.
set lock_timeout = 0;
drop index concurrently if exists policies_app_idx;
create index concurrently policies_app_idx on policies ((definition -> 'subject' ->> 'appName')) where deleted_at is null;
reset lock_timeout;

-- +goose Down
drop index policies_app_idx;
