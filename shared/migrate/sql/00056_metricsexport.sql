-- +goose Up

-- Metrics that others ask for, with their present values. value is that of a counter or gauge; of an enum text is the
-- state, of an info body its labels. Those of a model have what was measured of it: lower and upper bound the value, source
-- is the kind of model that it comes from, and the errors are those of the last day beside those of the better naive kind.
create table metrics (
    name       text primary key,
    type       text        not null,
    help       text        not null,
    labels     text[]      not null,
    states     text[]      not null,
    created_by text        not null,
    created_at timestamptz not null default now()
);
create table metric_series (
    metric      text        not null references metrics on delete cascade,
    labels      jsonb       not null,
    value       float8      not null,
    text        text        not null default '',
    body        jsonb       not null default '{}',
    lower       float8,
    upper       float8,
    source      text        not null default '',
    error       float8,
    naive_error float8,
    judged_at   timestamptz,
    at          timestamptz not null default now(),
    primary key (metric, labels)
);

-- Metrics whose values a model foresees. due_at says when the next values are due; why is the reason for which there are
-- none, after so many failures in a row.
create table metric_forecasts (
    metric       text primary key references metrics on delete cascade,
    query        text        not null,
    model        text        not null, -- name:version or name:latest
    model_type   text        not null,
    step_seconds int         not null,
    sequence     int         not null,
    ahead        int         not null, -- steps
    labels       jsonb       not null,
    due_at       timestamptz not null default now(),
    told_at      timestamptz,
    failures     int         not null default 0,
    why          text        not null default ''
);
create index metric_forecasts_due on metric_forecasts (due_at);

-- Trainings, and the models that came of them; the model itself is in the object store, under its name and version.
create table trainings (
    id         uuid primary key,
    model      text        not null,
    version    int         not null,
    request    jsonb       not null,
    state      text        not null, -- Waiting, Finished or Failed
    why        text        not null default '',
    created_by text        not null,
    created_at timestamptz not null default now(),
    ended_at   timestamptz,
    unique (model, version)
);
create table models (
    name       text        not null,
    version    int         not null,
    kind       text        not null,
    about      jsonb       not null,
    created_at timestamptz not null default now(),
    primary key (name, version)
);

-- +goose Down
drop table models, trainings, metric_forecasts, metric_series, metrics;
