-- +goose Up

-- A federation that a training of metrics export asked for is over after some rounds, or when nobody comes.
alter table pdlc_federations
    add column rounds   int  not null default 0, -- 0: it goes on
    add column waited   int  not null default 0, -- how often the time of the present round was extended
    add column training uuid;

-- +goose Down
alter table pdlc_federations drop column rounds, drop column waited, drop column training;
