-- +goose Up
-- Each event of an application asks whether policies are about it, deleted ones included.
create index policies_instance_idx on policies (instance);

-- +goose Down
drop index policies_instance_idx;
