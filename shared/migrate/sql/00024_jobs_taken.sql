-- +goose Up

-- When an agent first took the job at its place: from then on a device that telemetry shows busy there may be the job's own
-- doing. Where an agent has a job and this is not known, it was long ago.
alter table jobs add column taken_at timestamptz;

-- +goose Down
alter table jobs drop column taken_at;
