// Migrate brings the database of DATABASE_URL to the schema that the functions expect, and ends. A deployment runs it
// as a Job before the functions; it may run twice or beside itself.
//
// The address must lead to Postgres itself: a pooler in transaction mode loses the lock that migrations are made
// under.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/littoral-project/littoral/shared/migrate"
	"github.com/littoral-project/littoral/shared/roles"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
)

type config struct {
	DatabaseURL string        `envconfig:"DATABASE_URL" required:"true"`
	Patience    time.Duration `envconfig:"PATIENCE" default:"2m"` // for a Postgres that does not answer yet or is full, or a table that is locked
	RolesDir    string        `envconfig:"ROLES_DIR"`             // where the addresses of functions with roles of their own are; empty = they have none
	Exactly     bool          `envconfig:"ROLES_EXACTLY"`         // take from those roles what a former version needed
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	var c config
	err := settings.Read(os.LookupEnv, "", &c)
	if err == nil {
		err = run(ctx, c, log)
	}
	if err != nil {
		log.Error("the database was not migrated", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c config, log *slog.Logger) error {
	deadline := time.Now().Add(c.Patience)
	for {
		err := migrate.Up(ctx, c.DatabaseURL)
		if err == nil {
			err = expect(ctx, c.DatabaseURL)
		}
		if err == nil && c.RolesDir != "" {
			err = enroll(ctx, c)
		}
		if err == nil {
			log.Info("the database has the schema of this version", "fingerprint", migrate.Fingerprint())
			return nil
		}
		if !passes(err) || time.Now().After(deadline) {
			return err
		}
		log.Info("the database cannot be migrated yet", "error", err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("told to stop: %w", err)
		case <-time.After(time.Second):
		}
	}
}

// expect keeps the first events of a new deployment in the outbox until outbox/follow has read the Triggers.
func expect(ctx context.Context, url string) error {
	db, err := store.Open(ctx, store.Config{DatabaseURL: url}, nil, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.ExpectSubscriptions(ctx)
}

// enroll gives functions roles and logins of their own.
func enroll(ctx context.Context, c config) error {
	logins, err := roles.ReadLogins(c.RolesDir)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, c.DatabaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := roles.Grant(ctx, conn, c.Exactly); err != nil {
		return err
	}
	return roles.Admit(ctx, conn, logins)
}

// passes reports whether err will pass by itself: Postgres is not there yet (class 57P: it starts or stops), all its connections
// are taken (53300), or somebody, such as a backup, holds a lock on a table (55P03).
func passes(err error) bool {
	var connect *pgconn.ConnectError
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.HasPrefix(pg.Code, "57P") || pg.Code == "53300" || pg.Code == "55P03"
	}
	return errors.As(err, &connect)
}
