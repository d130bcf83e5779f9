// Package migrate brings a database to the schema that the functions expect. Functions never migrate; the laptop host,
// the tests and the migration Job do.
package migrate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed sql/*.sql
var files embed.FS

// locksWithin bounds the wait for a lock. A request for an exclusive lock that waits, for a backup say, blocks everyone who
// needs the table after it. So it gives up soon and is repeated with the next attempt. lock_timeout in the URL overrides it.
const locksWithin = "2s"

// connectsWithin bounds an attempt to connect. The machine of a Postgres that has moved may not answer at all. connect_timeout
// in the URL overrides it.
const connectsWithin = 5 * time.Second

// Up applies what is missing. An advisory lock makes it safe to run twice or in parallel. The error is 55P03 when a lock
// on a table was not granted in time; what was applied before stays.
func Up(ctx context.Context, databaseURL string) error {
	provider, err := open(databaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = provider.Close() }()
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// UpTo applies what is missing up to a version.
func UpTo(ctx context.Context, databaseURL string, version int64) error {
	provider, err := open(databaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = provider.Close() }()
	if _, err := provider.UpTo(ctx, version); err != nil {
		return fmt.Errorf("migrate to %d: %w", version, err)
	}
	return nil
}

// Versions are the numbers of all migrations, in order.
func Versions() ([]int64, error) {
	names, err := fs.Glob(files, "sql/*.sql")
	if err != nil {
		return nil, err
	}
	var list []int64
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, err
		}
		list = append(list, version)
	}
	return list, nil
}

func open(databaseURL string) (*goose.Provider, error) {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	if config.RuntimeParams["lock_timeout"] == "" {
		config.RuntimeParams["lock_timeout"] = locksWithin
	}
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectsWithin)
	dir, err := fs.Sub(files, "sql")
	if err != nil {
		return nil, err
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, stdlib.OpenDB(*config), dir, goose.WithSessionLocker(locker))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return provider, nil
}

// Fingerprint changes whenever a migration does; databases with the same one have the same schema.
func Fingerprint() string {
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		fmt.Fprintf(sum, "%s %d %s", path, len(text), text)
		return err
	})
	if err != nil {
		panic(err) // the files are part of the program
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}
