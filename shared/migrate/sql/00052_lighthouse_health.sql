-- +goose Up

-- Whether the lighthouse itself reached a controller, when it last tried.
alter table controllers
    add column healthy    bool,        -- null = not tried yet
    add column checked_at timestamptz,
    add column trouble    text not null default '';

-- +goose Down
alter table controllers drop column healthy, drop column checked_at, drop column trouble;
