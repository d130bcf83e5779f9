package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/store"
)

// sqlTables are the tables that functions change. The records of migrations and the issuer's keys do not change.
const sqlTables = `select tablename from pg_tables where schemaname = 'public'
and tablename not in ('goose_db_version', 'issuer_keys') order by 1`

// save stores the content of the database for restore.
func (s *scene) save(ctx context.Context) error {
	tables, err := store.Collect(ctx, s.system.db, "list the tables", pgx.RowTo[string], sqlTables)
	if err != nil {
		return err
	}
	keep, back := "drop schema if exists kept cascade; create schema kept;", "set local session_replication_role = replica;"
	for _, table := range tables {
		t := pgx.Identifier{table}.Sanitize()
		keep += fmt.Sprintf("create table kept.%s as table public.%s;", t, t)
		// As text, since values of type json cannot be compared. The tables have a few rows each.
		back += fmt.Sprintf("delete from public.%[1]s t where not exists (select from kept.%[1]s k where k::text = t::text);"+
			"insert into public.%[1]s overriding system value table kept.%[1]s on conflict do nothing;", t)
	}
	s.back = back
	return s.several(ctx, keep+"analyze")
}

// restore restores the content that was kept, so that cases do not affect each other.
func (s *scene) restore(ctx context.Context) error { return s.several(ctx, s.back) }

// several runs statements, each ending with a semicolon, in one transaction.
func (s *scene) several(ctx context.Context, statements string) error {
	_, err := s.system.db.Exec(ctx, strings.TrimSuffix(statements, ";"), pgx.QueryExecModeSimpleProtocol)
	return err
}
