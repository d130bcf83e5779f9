-- +goose Up

-- What jobs have reserved on each node: the sums of those that still run or may, clean-ups included. A trigger keeps them, so
-- that no transaction that changes a job can leave them behind. Nodes on which nothing is reserved have no row.
create table node_reservations (
    cluster        text,
    node           text,
    jobs           int    not null,
    cpu_milli      bigint not null,
    memory_bytes   bigint not null,
    without_cpu    int    not null, -- jobs that reserve none
    without_memory int    not null,
    with_devices   int    not null, -- jobs that reserve some
    primary key (cluster, node)
);

-- Whether a job holds what it reserves at its place.
create function reserves(cluster text, type text, state text, owner_id text) returns bool language sql immutable as $$
    select cluster <> '' and not (state = 'Finished' and (type = 'DeleteDeployment' or owner_id = ''))
$$;

-- +goose StatementBegin
create function keep_node_reservations() returns trigger language plpgsql as $$
declare
    was bool := tg_op <> 'INSERT' and reserves(old.cluster, old.type, old.state, old.owner_id);
    now bool := tg_op <> 'DELETE' and reserves(new.cluster, new.type, new.state, new.owner_id);
begin
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

-- Nobody may change a job between the two.
lock table jobs in share row exclusive mode;
insert into node_reservations
select cluster, node, count(*), sum(cpu_milli), sum(memory_bytes), count(*) filter (where cpu_milli = 0),
    count(*) filter (where memory_bytes = 0), count(*) filter (where devices <> '{}')
from jobs where reserves(cluster, type, state, owner_id) group by cluster, node;

create trigger keep_node_reservations after insert or delete on jobs
    for each row execute function keep_node_reservations();
create trigger keep_node_reservations_changed after update on jobs
    for each row when ((old.cluster, old.node, old.cpu_milli, old.memory_bytes, old.devices, old.state, old.type, old.owner_id) is distinct from
        (new.cluster, new.node, new.cpu_milli, new.memory_bytes, new.devices, new.state, new.type, new.owner_id))
    execute function keep_node_reservations();

-- +goose Down
drop trigger keep_node_reservations_changed on jobs;
drop trigger keep_node_reservations on jobs;
drop function keep_node_reservations;
drop function reserves;
drop table node_reservations;
