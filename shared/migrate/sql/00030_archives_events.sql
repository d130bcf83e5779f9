-- +goose Up

-- Which events an object tells of, so that who asks for a rare one need not have every object fetched. Null: it was stored
-- before this was noted, and may tell of any.
alter table archives add column events text[];
-- An object may be about thousands of applications.
create index archives_applications_idx on archives using gin (applications) where kind = 'history';

-- +goose Down
drop index archives_applications_idx;
alter table archives drop column events;
