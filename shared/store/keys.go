package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

const issuerKeys = `select keys, now() - fetched_at from issuer_keys where issuer = $1`

// IssuerKeys returns the stored key set of a token issuer and its age; nil when there is none.
func (db *DB) IssuerKeys(ctx context.Context, issuer string) (set []byte, age time.Duration, err error) {
	err = db.QueryRow(ctx, issuerKeys, issuer).Scan(&set, &age)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, 0, nil
	}
	return set, age, err
}

const upsertIssuerKeys = `
insert into issuer_keys (issuer, keys) values ($1, $2)
on conflict (issuer) do update set keys = excluded.keys, fetched_at = excluded.fetched_at`

// SaveIssuerKeys stores the key set of a token issuer, for instances that start later.
func (db *DB) SaveIssuerKeys(ctx context.Context, issuer string, set []byte) error {
	_, err := db.Exec(ctx, upsertIssuerKeys, issuer, set)
	return err
}
