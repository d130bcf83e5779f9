-- +goose Up

-- At which version of its cluster an object of the metadata graph was looked at last, or was found to be gone: whoever looked
-- before that says nothing new. Kept for as long as a look may be under way.
create table mdm_versions (
    edf_id  uuid primary key,
    version bigint      not null,
    at      timestamptz not null default now()
);
create index mdm_versions_at on mdm_versions (at);

-- +goose Down
drop table mdm_versions;
