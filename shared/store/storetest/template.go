package storetest

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/migrate"
)

// lockTemplate is the advisory lock under which one process makes the template while others wait.
const lockTemplate = 7205759403

// template returns the name of a migrated database that nobody connects to, making it when it is not there. Its name
// holds the fingerprint of the migrations, so a server that outlives a change of them serves the new schema.
func template(ctx context.Context, serverURL string) (string, error) {
	conn, err := pgx.Connect(ctx, serverURL)
	if err != nil {
		return "", fmt.Errorf("test server: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, `select pg_advisory_lock($1)`, lockTemplate); err != nil {
		return "", err
	}
	name := "template_" + migrate.Fingerprint() + rolesMark()
	var ready bool
	const isReady = `select exists (select from pg_database where datname = $1 and datistemplate)`
	if err := conn.QueryRow(ctx, isReady, name).Scan(&ready); err != nil || ready {
		return name, err
	}
	id := pgx.Identifier{name}.Sanitize()
	for _, statement := range []string{
		`drop database if exists ` + id, // half made by a process that was killed
		`create database ` + id,
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return "", err
		}
	}
	if err := migrate.Up(ctx, within(serverURL, name)); err != nil {
		return "", err
	}
	if err := enroll(ctx, within(serverURL, name)); err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, `alter database `+id+` with is_template true allow_connections false`)
	return name, err
}

// enroll makes the roles of functions, if tests are to run with them.
func enroll(ctx context.Context, databaseURL string) error {
	if roles == "" {
		return nil
	}
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, roles); err != nil {
		return fmt.Errorf("%s: %w", EnvRoles, err)
	}
	return nil
}
