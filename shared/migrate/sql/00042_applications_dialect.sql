-- +goose Up

-- The language of the descriptor, so that it is read as what it is; everything before was ICOS.
alter table applications add column dialect text not null default 'icos';

-- +goose Down
alter table applications drop column dialect;
