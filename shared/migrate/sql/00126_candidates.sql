-- +goose Up

-- Rows are found by the names that targets use.
create index topology_nodes_names_idx on topology_nodes (cluster, node);

-- A measured amount as placement counts it: rounded away from zero at the half, and never negative.
create function whole_number(v float8) returns bigint language sql immutable as $$
    select case when v > 0 then
        case when v >= 4611686018427387904 then 4611686018427387904
            else floor(v)::bigint + (v - floor(v) >= 0.5)::int end
        else 0 end
$$;

-- +goose Down
drop function whole_number;
drop index topology_nodes_names_idx;
