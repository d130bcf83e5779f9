-- +goose Up

-- Every descriptor that an application was given, by the version of the application that it made.
create table revisions (
    application_id uuid        not null references applications (id),
    revision       bigint      not null,
    at             timestamptz not null default now(),
    author         text        not null default '', -- the caller; empty if that is not known any more
    restores       bigint,                          -- the revision that a rollback went back to
    summary        text        not null default '', -- what it changed, for people
    descriptor     text        not null,
    primary key (application_id, revision)
);

-- Of the applications that there are, earlier descriptors were not kept.
insert into revisions (application_id, revision, at, author, summary, descriptor)
select id, version, updated_at, case when version = 1 then owner else '' end, 'before revisions were kept', descriptor
from applications where deleted_at is null;

-- +goose Down
drop table revisions;
