-- +goose Up

-- The index by component has no clean-ups in it, so who asked for all jobs of one application read those of all others too.
create index jobs_application_idx on jobs (application_id);

-- +goose Down
drop index jobs_application_idx;
