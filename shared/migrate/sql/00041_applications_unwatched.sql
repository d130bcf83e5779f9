-- +goose Up

-- Which policies of the application cannot be watched, by name or by path in the descriptor, and why.
alter table applications
    add column unwatched    jsonb not null default '{}',
    add column unwatched_at timestamptz;

-- +goose Down
alter table applications drop column unwatched, drop column unwatched_at;
