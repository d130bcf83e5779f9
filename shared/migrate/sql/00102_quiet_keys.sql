-- +goose Up

-- So that a tick at which nothing is due reads no key: see shared/exporter/heartbeat.go.
create index bus_values_at on bus_values (at) where not deleted;
create index exported_components_ended on exported_components (ended_at) where ended_at is not null;

-- +goose Down
drop index exported_components_ended;
drop index bus_values_at;
