// Grants writes shared/roles/grants.sql, what each function may do in the database: exactly what its statements need. Tests have
// kept those in a folder (LITTORAL_TEST_STATEMENTS), and programs carry them:
//
//	go run ./scripts/gen/grants -programs bin/statements    # read them off the programs, which it builds for that
//	go run ./scripts/gen/grants bin/statements              # write the file
//	go run ./scripts/gen/grants -try bin/statements         # try it: no right is missing, and none is too much
//
// Postgres itself says which rights a statement needs, by its query tree, and in -try whether it has them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/migrate"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

const grantsFile = "shared/roles/grants.sql"

func main() {
	log.SetFlags(0)
	trying := flag.Bool("try", false, "try the file")
	programs := flag.Bool("programs", false, "read the programs")
	flag.Parse()
	if err := run(context.Background(), flag.Args(), *trying, *programs); err != nil {
		log.Fatal("grants: ", err)
	}
}

func run(ctx context.Context, args []string, trying, programs bool) error {
	if len(args) != 1 {
		return errors.New("say the folder of the statements, which tests write with " + storetest.EnvStatements)
	}
	if programs {
		return readPrograms(ctx, args[0])
	}
	url, stop, err := storetest.Start(ctx)
	if err != nil {
		return err
	}
	defer stop()
	if err := migrate.Up(ctx, url); err != nil {
		return err
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	db, err := open(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = db.conn.Close(ctx) }()
	all, err := db.read(ctx, args[0])
	if err != nil {
		return err
	}
	if trying {
		return db.try(ctx, all)
	}
	return os.WriteFile(grantsFile, []byte(write(all)), 0o644)
}

// storing lists the functions that use the store.
func storing() []string {
	var names []string
	for _, entry := range functions.Registry {
		if slices.Contains(entry.Spec.Secrets(), "DATABASE_URL") {
			names = append(names, entry.Name)
		}
	}
	slices.Sort(names)
	return names
}

// read reads the statements of every function that uses the store, and what they need.
func (db *database) read(ctx context.Context, dir string) (map[string]rights, error) {
	all := map[string]rights{}
	of, err := statements(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range storing() {
		list := of[name]
		if len(list) == 0 {
			return nil, fmt.Errorf("%s: no test has kept a statement of it", name)
		}
		all[name] = rights{}
		for _, sql := range list {
			s, err := db.statement(ctx, sql)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if s == nil || slices.Contains(db.of[name], s) {
				continue
			}
			db.of[name] = append(db.of[name], s)
			for r := range s.needs {
				all[name][r] = true
			}
		}
		db.choose(all[name])
	}
	return all, nil
}
