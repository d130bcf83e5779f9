-- +goose Up
-- What was worked off long ago is forgotten by its age. Rows come in the order of time, so the smallest of indexes does.
create index inbox_at_idx on inbox using brin (at);

-- +goose Down
drop index inbox_at_idx;
