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
    allowed text;
begin
    perform set_config('lock_timeout', '2s', true); -- as for migrations
    for their in select * from (values
        ('applications', $own$current_setting('littoral.tenant', true) in ('application:' || id, 'person:' || owner)$own$),
        -- One look at an index for each row: with "exists", Postgres may read all applications first.
        ('jobs', '(select true from applications a where a.id = application_id)'),
        ('history', '(select true from applications a where a.id = application_id)'),
        ('revisions', '(select true from applications a where a.id = application_id)'),
        ('handovers', '(select true from applications a where a.id = application_id)'),
        ('codeco_apps', '(select true from applications a where a.id = application_id)'),
        ('channels', '(select true from applications a where a.id = application_id)'),
        ('channel_ends', '(select true from applications a where a.id = application_id)'),
        ('channel_replans', '(select true from applications a where a.id = application_id)'),
        ('swm_objects', '(select true from applications a where a.id = application_id)'),
        ('node_costs', '(select true from applications a where a.id = application_id)'),
        ('link_sides', '(select true from applications a where a.id = application)'),
        ('pdlc_recommendations', '(select true from applications a where a.id = application)'),
        ('policies', 'exists (select from applications a where a.id::text = instance)'),
        ('policy_actions', 'exists (select from applications a where a.id::text = instance)'),
        ('policy_events', '(select true from policies p where p.id = policy_id)'),
        ('policy_alerts', 'exists (select from policies p where p.id::text = policy_id)'),
        ('exported_applications', 'exists (select from applications a where a.id::text = instance)'),
        ('exported_components', 'exists (select from applications a where a.id::text = instance)'),
        ('archives', 'false'), -- each is about many applications
        -- An application has the keys that begin with its id; people read the bus for the site.
        ('bus_values', $own$current_setting('littoral.tenant', true) = 'application:' || key
            or starts_with('application:' || key, current_setting('littoral.tenant', true) || '/')$own$)
    ) as each_of_them (name, own)
    loop
        -- Postgres takes "case" for half of the rows, and "or" for so few that it would sort them instead of reading them in order.
        allowed := format('case when current_setting(''littoral.tenant'', true) = ''all'' then true else %s end', their.own);
        -- A change waits for whoever uses the table, and lets others wait, so it is made only where it is one.
        continue when exists (select from pg_policy p where p.polrelid = to_regclass(quote_ident(their.name)) and p.polname = 'tenant'
            and obj_description(p.oid, 'pg_policy') = allowed);
        execute format('alter table %I enable row level security', their.name);
        if not exists (select from pg_policy p where p.polrelid = to_regclass(quote_ident(their.name)) and p.polname = 'everybody') then
            execute format('create policy everybody on %I using (true)', their.name);
        else
            execute format('drop policy tenant on %I', their.name);
        end if;
        execute format('create policy tenant on %I as restrictive to littoral_tenant using (%s)', their.name, allowed);
        execute format('comment on policy tenant on %I is %L', their.name, allowed);
    end loop;
end
$$;
