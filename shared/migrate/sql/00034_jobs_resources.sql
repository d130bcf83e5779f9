-- +goose NO TRANSACTION
-- +goose Up

-- Each placement asks what every job holds, and few hold more than cpu and memory: the content of the others need not be
-- fetched for that. An attempt that was cut off leaves an index that nobody may use.
set lock_timeout = 0;
drop index concurrently if exists jobs_resources_idx;
create index concurrently jobs_resources_idx on jobs (id) where instruction @> '{"requirements": {"resources": {}}}';
reset lock_timeout;

-- +goose Down
drop index jobs_resources_idx;
