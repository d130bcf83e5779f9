-- +goose Up

-- An alert that came in while its policy was activated anew is of the former activation. So which one a row is of belongs
-- to its key, or the next notice of the same alert would look like a repeat. Who does not say writes the zero time.
alter table policy_alerts
    add column since timestamptz not null default '0001-01-01 00:00:00Z',
    drop constraint policy_alerts_pkey,
    add primary key (policy_id, fingerprint, starts_at, status, since);

-- +goose Down
delete from policy_alerts; -- each is announced once more then, which changes nothing
alter table policy_alerts
    drop column since,
    add primary key (policy_id, fingerprint, starts_at, status);
