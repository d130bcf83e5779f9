-- +goose Up

-- Triggers write with the rights of their owner, so that who deletes an action or changes a job needs none on what they keep. They
-- find the tables beside the one they are on: a restore puts all of them into another schema.

-- +goose StatementBegin
create or replace function keep_reaction_times() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform set_config('search_path', quote_ident(tg_table_schema) || ', pg_temp', true); -- until the function ends
    -- Two that update the same rows, each in its own order, would wait for each other.
    lock table reaction_times in share row exclusive mode;
    update reaction_times t set count = t.count + g.count, seconds = t.seconds + g.seconds
    from (select t.stage, t.le, count(*), sum(s.seconds) as seconds
        from gone a cross join lateral reaction_stages(a.started_at, a.received_at, a.judged_at, a.acted_at) s
        join reaction_times t on t.stage = s.stage and s.seconds <= t.le group by t.stage, t.le) g
    where t.stage = g.stage and t.le = g.le;
    return null;
end
$$;
create or replace function keep_node_reservations() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    was bool;
    now bool;
begin
    perform set_config('search_path', quote_ident(tg_table_schema) || ', pg_temp', true); -- until the function ends
    was := tg_op <> 'INSERT' and reserves(old.cluster, old.type, old.state, old.owner_id);
    now := tg_op <> 'DELETE' and reserves(new.cluster, new.type, new.state, new.owner_id);
    if was and now and (old.cluster, old.node, old.cpu_milli, old.memory_bytes, old.devices) =
        (new.cluster, new.node, new.cpu_milli, new.memory_bytes, new.devices) then
        return null;
    end if;
    if now then
        insert into node_reservations as r
        values (new.cluster, new.node, 1, new.cpu_milli, new.memory_bytes, (new.cpu_milli = 0)::int, (new.memory_bytes = 0)::int,
            (new.devices <> '{}')::int)
        on conflict (cluster, node) do update set
            jobs = r.jobs + 1, cpu_milli = r.cpu_milli + excluded.cpu_milli, memory_bytes = r.memory_bytes + excluded.memory_bytes,
            without_cpu = r.without_cpu + excluded.without_cpu, without_memory = r.without_memory + excluded.without_memory,
            with_devices = r.with_devices + excluded.with_devices;
    end if;
    if was then
        update node_reservations r set
            jobs = r.jobs - 1, cpu_milli = r.cpu_milli - old.cpu_milli, memory_bytes = r.memory_bytes - old.memory_bytes,
            without_cpu = r.without_cpu - (old.cpu_milli = 0)::int, without_memory = r.without_memory - (old.memory_bytes = 0)::int,
            with_devices = r.with_devices - (old.devices <> '{}')::int
        where r.cluster = old.cluster and r.node = old.node;
        delete from node_reservations r where r.cluster = old.cluster and r.node = old.node and r.jobs = 0;
    end if;
    return null;
end
$$;
-- +goose StatementEnd

-- +goose Down
-- What they do did not change.
alter function keep_node_reservations() security invoker reset search_path;
alter function keep_reaction_times() security invoker reset search_path;
