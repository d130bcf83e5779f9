-- +goose Up

-- What components leave out and their compose files ask for is found when a descriptor is handed in, and kept with it.
alter table applications add column compose_needs jsonb;
alter table revisions add column compose_needs jsonb;

-- Jobs have the requirements that were derived before. Of a component that says its own these are no others.
update applications a set compose_needs = n.needs
from (
    select application_id, jsonb_agg(jsonb_build_object('component', component, 'cpuMilli', cpu, 'memoryBytes', memory)) as needs
    from (
        select distinct on (application_id, component) application_id, component,
            coalesce((instruction #>> '{requirements,cpuMilli}')::bigint, 0) as cpu,
            coalesce((instruction #>> '{requirements,memoryBytes}')::bigint, 0) as memory
        from jobs where cleans is null
        order by application_id, component, created_at desc
    ) j where cpu > 0 or memory > 0
    group by application_id
) n
where n.application_id = a.id and a.deleted_at is null and a.descriptor like '%services%';

-- +goose Down
alter table revisions drop column compose_needs;
alter table applications drop column compose_needs;
