-- +goose Up

-- Agents of ICOS name a job by its resource alone when they synchronise what their orchestrator shows.
create index jobs_resource_idx on jobs (resource_uuid) where resource_uuid <> '';

-- +goose Down
drop index jobs_resource_idx;
