-- +goose Up

-- A remediation that waits for a person: suggested, until it is confirmed or dismissed, or its violation ends.
alter table policy_actions
    add column confirmed_by text not null default '',
    drop constraint policy_actions_status_check,
    add constraint policy_actions_status_check check (status in ('pending', 'held', 'done', 'skipped', 'suggested')) not valid;
alter table policy_actions validate constraint policy_actions_status_check;
create index policy_actions_suggested_idx on policy_actions (judged_at, id) where status = 'suggested';

-- +goose Down
update policy_actions set status = 'skipped', acted_at = now() where status = 'suggested';
drop index policy_actions_suggested_idx;
alter table policy_actions
    drop column confirmed_by,
    drop constraint policy_actions_status_check,
    add constraint policy_actions_status_check check (status in ('pending', 'held', 'done', 'skipped'));
