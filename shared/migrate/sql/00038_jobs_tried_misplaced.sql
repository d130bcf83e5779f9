-- +goose Up

-- What decides about a job is no more read out of its conditions: whether the matchmaker has looked for a place since the job
-- waits for one, and why it should not be where it is ("violating", "too-large").
alter table jobs add column tried bool not null default false;
alter table jobs add column misplaced text[] not null default '{}';
update jobs set tried = true where not conditions @> '[{"reason": "AwaitingForTarget", "message": ""}]';
update jobs set misplaced = array_remove(array[
    case when excluded @> jsonb_build_array(jsonb_build_object('cluster_name', cluster, 'node_name', node)) then 'violating' end,
    case when conditions @> '[{"reason": "DoesNotFit"}]' then 'too-large' end], null)
where cleans is null and cluster <> '' and type <> 'DeleteDeployment' and (excluded <> '[]' or conditions @> '[{"reason": "DoesNotFit"}]');

-- An action that should have moved something and found no other place for it is no move.
alter table policy_actions add column idle bool not null default false;
update policy_actions set idle = true where status = 'done' and detail = 'nothing was moved';

-- +goose Down
alter table policy_actions drop column idle;
alter table jobs drop column misplaced, drop column tried;
