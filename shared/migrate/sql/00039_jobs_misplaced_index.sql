-- +goose NO TRANSACTION
-- +goose Up

-- As jobs_misplaced_idx, which looked into conditions. An interrupted attempt leaves an invalid index, which is dropped first.
set lock_timeout = 0;
drop index concurrently if exists jobs_wrong_place_idx;
create index concurrently jobs_wrong_place_idx on jobs (application_id) where cleans is null and misplaced <> '{}';
drop index concurrently if exists jobs_misplaced_idx;
reset lock_timeout;

-- +goose Down
drop index jobs_wrong_place_idx;
create index jobs_misplaced_idx on jobs (application_id)
    where cleans is null and (excluded <> '[]' or conditions @> '[{"reason": "DoesNotFit"}]');
