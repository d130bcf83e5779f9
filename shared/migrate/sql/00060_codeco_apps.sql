-- +goose Up

-- CodecoApps by the name that their users know them by, and the application that runs each. uid is that of the object in
-- Kubernetes, empty for one that came over HTTP. status is what was written to the object last.
create table codeco_apps (
    namespace      text        not null,
    name           text        not null,
    application_id uuid        not null unique references applications (id) on delete cascade,
    uid            text        not null default '',
    status         jsonb,
    status_at      timestamptz,
    primary key (namespace, name)
);

-- +goose Down
drop table codeco_apps;
