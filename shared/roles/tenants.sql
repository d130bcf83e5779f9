-- Whose rows the functions see that answer about one application, or to one person. They are members of littoral_tenant, say for
-- whom they ask (store.DB.As), and see nothing where they have not said so. Others see all rows, as before: the policy "everybody"
-- is nothing to their plans. The owner of the tables is not asked. It may be run again.
do $$
begin
    if not exists (select from pg_roles where rolname = 'littoral_tenant') then
        create role littoral_tenant;
    end if;
end
$$;

grant littoral_tenant to
    littoral_bus_get,
    littoral_controller_logs_read,
    littoral_deploymentmanager_pod_logs,
    littoral_telemetry_logs,
    littoral_telemetry_series;

-- What the policies below look at.
grant select (id) on applications, policies to littoral_tenant;

do $$
declare
    their record;
    everything constant text := 'current_setting(''littoral.tenant'', true) = ''all''';
begin
    perform set_config('lock_timeout', '2s', true); -- as for migrations
    for their in select * from (values
        ('applications', $own$current_setting('littoral.tenant', true) in ('application:' || id, 'person:' || owner)$own$),
        ('jobs', 'exists (select from applications a where a.id = application_id)'),
        ('history', 'exists (select from applications a where a.id = application_id)'),
        ('revisions', 'exists (select from applications a where a.id = application_id)'),
        ('handovers', 'exists (select from applications a where a.id = application_id)'),
        ('codeco_apps', 'exists (select from applications a where a.id = application_id)'),
        ('channels', 'exists (select from applications a where a.id = application_id)'),
        ('channel_ends', 'exists (select from applications a where a.id = application_id)'),
        ('channel_replans', 'exists (select from applications a where a.id = application_id)'),
        ('swm_objects', 'exists (select from applications a where a.id = application_id)'),
        ('node_costs', 'exists (select from applications a where a.id = application_id)'),
        ('link_sides', 'exists (select from applications a where a.id = application)'),
        ('pdlc_recommendations', 'exists (select from applications a where a.id = application)'),
        ('policies', 'exists (select from applications a where a.id::text = instance)'),
        ('policy_actions', 'exists (select from applications a where a.id::text = instance)'),
        ('policy_events', 'exists (select from policies p where p.id = policy_id)'),
        ('policy_alerts', 'exists (select from policies p where p.id::text = policy_id)'),
        ('exported_applications', 'exists (select from applications a where a.id::text = instance)'),
        ('exported_components', 'exists (select from applications a where a.id::text = instance)'),
        ('archives', 'false'), -- each is about many applications
        -- An application has the keys that begin with its id; people read the bus for the site.
        ('bus_values', $own$current_setting('littoral.tenant', true) = 'application:' || key
            or starts_with('application:' || key, current_setting('littoral.tenant', true) || '/')$own$)
    ) as each_of_them (name, own)
    loop
        -- A change waits for whoever uses the table, and lets others wait, so it is made only where it is one.
        continue when exists (select from pg_policy p where p.polrelid = to_regclass(quote_ident(their.name)) and p.polname = 'tenant'
            and obj_description(p.oid, 'pg_policy') = their.own);
        execute format('alter table %I enable row level security', their.name);
        execute format('drop policy if exists everybody on %I', their.name);
        execute format('create policy everybody on %I using (true)', their.name);
        execute format('drop policy if exists tenant on %I', their.name);
        execute format('create policy tenant on %I as restrictive to littoral_tenant using (%s or %s)', their.name, everything, their.own);
        execute format('comment on policy tenant on %I is %L', their.name, their.own);
    end loop;
end
$$;
