-- +goose NO TRANSACTION
-- +goose Up

-- Whenever something has made room, components in the wrong place are looked for under the lock of placements. There are next
-- to none. An interrupted attempt leaves an invalid index, which is dropped first.
set lock_timeout = 0;
drop index concurrently if exists jobs_misplaced_idx;
create index concurrently jobs_misplaced_idx on jobs (application_id)
    where cleans is null and (excluded <> '[]' or conditions @> '[{"reason": "DoesNotFit"}]');
reset lock_timeout;

-- +goose Down
drop index jobs_misplaced_idx;
