-- +goose Up

-- Of each greater than those before, so that an older decision about links never replaces a newer one in a cluster.
create sequence link_epochs;

-- What an application has in a cluster so that its components reach each other across clusters. contents are the objects; without
-- any, those that are there are being removed, and the row goes with them. applied is the epoch that the cluster has taken.
create table link_sides (
    application  uuid        not null,
    orchestrator text        not null,
    cluster      text        not null,
    copy         uuid        not null unique,
    name         text        not null,
    namespace    text        not null,
    epoch        bigint      not null,
    contents     jsonb       not null,
    links        jsonb       not null,
    applied      bigint      not null default 0,
    state        text        not null default 'Pending',
    message      text        not null default '',
    changed_at   timestamptz not null default now(),
    primary key (application, orchestrator, cluster)
);

-- +goose Down
drop table link_sides;
drop sequence link_epochs;
