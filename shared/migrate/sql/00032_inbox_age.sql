-- +goose NO TRANSACTION
-- +goose Up

-- The former BRIN index only helped as long as rows lay in order of age. Deleted rows leave room that new rows fill, so that
-- every range of the table may hold an old one, and all of it was read for each batch. An interrupted attempt leaves an invalid
-- index, which is dropped first.
set lock_timeout = 0;
drop index concurrently if exists inbox_age_idx;
create index concurrently inbox_age_idx on inbox (at);
drop index concurrently if exists inbox_at_idx;
reset lock_timeout;

-- +goose Down
create index inbox_at_idx on inbox using brin (at);
drop index inbox_age_idx;
