-- +goose Up

-- Up to which version of its descriptor an application was judged by the matchmaker. The first one shows by its jobs, which
-- have no place. What is there counts as judged: nobody kept it.
alter table applications add column judged bigint not null default 1;
update applications set judged = version;
create index applications_overlooked_idx on applications (id) where judged < version;

-- +goose Down
alter table applications drop column judged;
