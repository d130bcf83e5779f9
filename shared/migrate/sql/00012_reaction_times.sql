-- +goose Up

-- How many seconds each stage of a reaction took that has ended. Whoever says when an alert started may be ahead of us.
-- The seconds are exact: the sum of floats depends on their order, and would fall now and then.
create function reaction_stages(started timestamptz, received timestamptz, judged timestamptz, acted timestamptz)
returns table (stage text, seconds numeric) language sql immutable as $$
    select s.stage, greatest(extract(epoch from s.took), 0)
    from (values ('alert', received - started), ('judge', judged - received), ('act', acted - judged),
        ('total', acted - started)) s (stage, took)
    where s.took is not null
$$;

-- The histogram of the actions that are gone: how many took at most so many seconds, and the sum of their seconds. What
-- is counted may thus be deleted, and the counters go on.
create table reaction_times (
    stage   text,
    le      float8,
    count   bigint not null default 0,
    seconds numeric not null default 0,
    primary key (stage, le)
);
insert into reaction_times (stage, le)
select stage, le from unnest(array['alert', 'judge', 'act', 'total']) stage,
    unnest(array[0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 'Infinity']) le;

-- +goose StatementBegin
create function keep_reaction_times() returns trigger language plpgsql as $$
begin
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
-- +goose StatementEnd
create trigger keep_reaction_times after delete on policy_actions referencing old table as gone
    for each statement execute function keep_reaction_times();

-- +goose Down
drop trigger keep_reaction_times on policy_actions;
drop function keep_reaction_times;
drop table reaction_times;
drop function reaction_stages;
