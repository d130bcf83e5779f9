-- +goose Up

-- The applications whose components are told where they run, and what each was told last. places are the nodes in it, as
-- "cluster/node", by which a change of a node finds whom it is about. Generations grow over all components.
create sequence exported_generations;
create table exported_applications (
    instance   text primary key,
    name       text   not null,
    components text[] not null, -- as registered by hand; none for an application of ours, whose jobs say
    by_hand    bool   not null
);
create table exported_components (
    instance   text   not null,
    component  text   not null,
    generation bigint not null,
    clusters   text   not null,
    places     text[] not null,
    ended_at   timestamptz, -- since when there is no such component any more
    primary key (instance, component)
);

-- +goose Down
drop table exported_components, exported_applications;
drop sequence exported_generations;
