-- +goose Up

-- Digest of the descriptor as it was handed in first: an update leaves it, so that a repeat under the same Idempotency-Key
-- is still told from another descriptor. Of what was updated before nobody knows the first.
alter table applications add column submitted bytea;
update applications set submitted = sha256(convert_to(descriptor, 'UTF8')) where version = 1 and idempotency_key is not null;

-- +goose Down
alter table applications drop column submitted;
