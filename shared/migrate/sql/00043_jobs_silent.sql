-- +goose Up

-- Since when the node of a job has not been heard of, when the job leaves it, and whether its whole cluster is silent.
alter table jobs
    add column silent_since   timestamptz,
    add column moves_at       timestamptz,
    add column cluster_silent bool not null default false;

create index jobs_silent_idx on jobs (application_id) where silent_since is not null;

-- +goose Down
drop index jobs_silent_idx;
alter table jobs drop column silent_since, drop column moves_at, drop column cluster_silent;
