-- +goose Up

-- The public keys of token issuers as they were last fetched, for instances that have just started.
create table issuer_keys (
    issuer     text primary key,
    keys       json        not null,
    fetched_at timestamptz not null default now()
);

-- +goose Down
drop table issuer_keys;
