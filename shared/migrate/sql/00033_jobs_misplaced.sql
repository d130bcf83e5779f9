-- +goose NO TRANSACTION
-- +goose Up

-- Which components are in the wrong place is asked whenever something has made room, while all placements wait for that.
-- Next to none are. An attempt that was cut off leaves an index that nobody may use.
set lock_timeout = 0;
drop index concurrently if exists jobs_misplaced_idx;
create index concurrently jobs_misplaced_idx on jobs (application_id)
    where cleans is null and (excluded <> '[]' or conditions @> '[{"reason": "DoesNotFit"}]');
reset lock_timeout;

-- +goose Down
drop index jobs_misplaced_idx;
