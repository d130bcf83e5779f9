-- +goose Up

-- Of a series that a model foresees: all steps to come, of which value is the last, and the time of the first.
alter table metric_series add column steps jsonb, add column first_at timestamptz;

-- +goose Down
alter table metric_series drop column steps, drop column first_at;
