-- +goose NO TRANSACTION
-- +goose Up

-- Once what was forgotten has left room, new rows come in between old ones, and the smallest of indexes does no more: each
-- part of the table may hold something old, so that all of it was read. An attempt that was cut off leaves an index that
-- nobody may use.
set lock_timeout = 0;
drop index concurrently if exists inbox_age_idx;
create index concurrently inbox_age_idx on inbox (at);
drop index concurrently if exists inbox_at_idx;
reset lock_timeout;

-- +goose Down
create index inbox_at_idx on inbox using brin (at);
drop index inbox_age_idx;
