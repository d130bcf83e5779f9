package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/store"
)

// sqlTables are those with what functions change. What the migrations note and the issuer's keys are the same for all.
const sqlTables = `select tablename from pg_tables where schemaname = 'public'
and tablename not in ('goose_db_version', 'issuer_keys') order by 1`

// keep remembers what is in the database, for restore to go back to.
func (s *scene) keep(ctx context.Context) error {
	tables, err := store.Collect(ctx, s.system.db, "list the tables", pgx.RowTo[string], sqlTables)
	if err != nil {
		return err
	}
	keep, back := "drop schema if exists kept cascade; create schema kept;", "set local session_replication_role = replica;"
	for _, table := range tables {
		t := pgx.Identifier{table}.Sanitize()
		keep += fmt.Sprintf("create table kept.%s as table public.%s;", t, t)
		// As text, since the type json cannot be compared. The tables hold a few rows each.
		back += fmt.Sprintf("delete from public.%[1]s t where not exists (select from kept.%[1]s k where k::text = t::text);"+
			"insert into public.%[1]s overriding system value table kept.%[1]s on conflict do nothing;", t)
	}
	s.back = back
	return s.several(ctx, keep+"analyze")
}

// restore leaves exactly what was kept, so that no case finds what another has left.
func (s *scene) restore(ctx context.Context) error { return s.several(ctx, s.back) }

// several runs statements, which end with a semicolon each, in one transaction.
func (s *scene) several(ctx context.Context, statements string) error {
	_, err := s.system.db.Exec(ctx, strings.TrimSuffix(statements, ";"), pgx.QueryExecModeSimpleProtocol)
	return err
}
