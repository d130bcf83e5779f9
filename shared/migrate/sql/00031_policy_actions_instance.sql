-- +goose NO TRANSACTION
-- +goose Up

-- Applications that were deleted go into the archive with what was done about their policies: of each all of it, whatever
-- became of it. An attempt that was cut off leaves an index that nobody may use.
set lock_timeout = 0;
drop index concurrently if exists policy_actions_instance_idx;
create index concurrently policy_actions_instance_idx on policy_actions (instance);
reset lock_timeout;

-- +goose Down
drop index policy_actions_instance_idx;
