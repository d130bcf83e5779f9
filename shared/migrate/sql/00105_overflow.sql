-- +goose Up

-- A hand-over that begins since the application fits nowhere here ends when it fits after all.
alter table handovers add column overflow bool not null default false;

-- +goose Down
alter table handovers drop column overflow;
