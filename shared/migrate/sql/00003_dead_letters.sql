-- +goose Up

-- Events that a consumer did not take and the Broker gave up, one row for each of the two. A row with replayed_at set was
-- sent again since; when that fails too, replayed_at is empty again and deaths is one more.
create table dead_letters (
    id          uuid primary key,
    consumer    text        not null,
    source      text        not null,
    event_id    text        not null,
    type        text        not null,
    event       json        not null,
    code        int         not null,
    answer      text        not null default '',
    deaths      int         not null default 1,
    at          timestamptz not null default now(),
    replayed_at timestamptz
);
create unique index dead_letters_event_idx on dead_letters (event_id, consumer, source);
create index dead_letters_open_idx on dead_letters (at, id) where replayed_at is null;

-- +goose Down
drop table dead_letters;
