-- +goose NO TRANSACTION
-- +goose Up

-- Each placement reads what every job has reserved. Few jobs reserve more than cpu and memory; with this index the content of
-- the others need not be fetched. An interrupted attempt leaves an invalid index, which is dropped first.
set lock_timeout = 0;
drop index concurrently if exists jobs_resources_idx;
create index concurrently jobs_resources_idx on jobs (id) where instruction @> '{"requirements": {"resources": {}}}';
reset lock_timeout;

-- +goose Down
drop index jobs_resources_idx;
