-- +goose NO TRANSACTION
-- +goose Up

-- A deleted application goes into the archive with all actions of its policies, in every state. An interrupted attempt leaves an
-- invalid index, which is dropped first.
set lock_timeout = 0;
drop index concurrently if exists policy_actions_instance_idx;
create index concurrently policy_actions_instance_idx on policy_actions (instance);
reset lock_timeout;

-- +goose Down
drop index policy_actions_instance_idx;
