-- +goose Up

-- Which cluster a node is in, by the identifier that changes when its site is set up anew; and by which agent, and in which
-- cluster, it was served when that was last looked at. Where it is served otherwise now, the jobs there are handed over.
alter table nodes
    add column cluster_uuid text not null default '',
    add column served_by    text not null default '',
    add column served_in    text not null default '';
update nodes set served_by = agent;

-- +goose Down
alter table nodes drop column cluster_uuid, drop column served_by, drop column served_in;
