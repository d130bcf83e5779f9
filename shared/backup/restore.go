package backup

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/migrate"
	"github.com/littoral-project/littoral/shared/objects"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/roles"
	"github.com/littoral-project/littoral/shared/store"
)

// beside is the schema that a backup is restored into, before it takes the place of what is there.
const beside = "littoral_restore"

// ahead is what numbers that were given since the backup can at most have grown by: those that the restored database gives
// are beyond them.
const ahead = 1_000_000

// Options of a restore.
type Options struct {
	DatabaseURL string        // of Postgres itself, not of a pooler
	Objects     objects.Store // nil: without objects
	Managers    string        // owner_id of our deployment managers, as a pattern of like; see Mark
	Patience    time.Duration // how long running transactions may keep the switch waiting
}

// Restored is what a restore has done.
type Restored struct {
	Manifest *Manifest

	// Former is the schema that has now what was in the database before; "" = it was empty.
	Former string
}

// Restore makes the backup the content of the database. It fills a schema beside the present one, with the schema that
// the backup had, migrates it, marks what has to be compared with what runs, and only then, in one transaction, moves
// all that is there into a schema of its own and the restored tables to where they were. So a restore that fails or dies changes
// nothing, functions may run meanwhile, and what was there can be looked at until somebody drops it.
//
// Objects that the backup has are written; others stay.
func Restore(ctx context.Context, file io.ReaderAt, size int64, o Options) (*Restored, error) {
	b, err := open(file, size)
	if err != nil {
		return nil, err
	}
	if o.Objects == nil && len(b.manifest.Objects) > 0 {
		return nil, fmt.Errorf("the backup has %d objects: set OBJECTS_URL to where they are to be", len(b.manifest.Objects))
	}
	conn, err := pgx.Connect(ctx, o.DatabaseURL)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	former, err := b.restore(ctx, conn, o)
	if err != nil {
		_, dropped := conn.Exec(context.WithoutCancel(ctx), `drop schema if exists `+beside+` cascade`)
		return nil, errors.Join(err, dropped)
	}
	return &Restored{Manifest: b.manifest, Former: former}, nil
}

func (b *backup) restore(ctx context.Context, conn *pgx.Conn, o Options) (former string, err error) {
	aside, err := within(o.DatabaseURL, beside)
	if err != nil {
		return "", err
	}
	newest := b.manifest.Migrations[len(b.manifest.Migrations)-1]
	known, err := migrate.Versions()
	if err != nil {
		return "", err
	}
	if upTo := slices.DeleteFunc(known, func(v int64) bool { return v > newest }); !slices.Equal(upTo, b.manifest.Migrations) {
		return "", fmt.Errorf("the backup has a schema that this version does not know (its newest migration is %d): "+
			"restore it with the version that made it, or a newer one", newest)
	}
	if _, err := conn.Exec(ctx, `drop schema if exists `+beside+` cascade; create schema `+beside); err != nil {
		return "", fmt.Errorf("make a schema to restore into: %w", err)
	}
	if err := migrate.UpTo(ctx, aside, newest); err != nil {
		return "", err
	}
	if err := b.fill(ctx, aside); err != nil {
		return "", fmt.Errorf("restore the database: %w", err)
	}
	if err := migrate.Up(ctx, aside); err != nil {
		return "", err
	}
	if err := mark(ctx, aside, o.Managers); err != nil {
		return "", err
	}
	if err := b.putObjects(ctx, o.Objects); err != nil {
		return "", fmt.Errorf("restore the objects: %w", err)
	}
	return replace(ctx, conn, o.Patience)
}

// Mark marks what has to be compared with what runs, in a database that something else has restored.
func Mark(ctx context.Context, databaseURL, managers string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		s, err := look(ctx, tx)
		if err != nil {
			return err
		}
		return advance(ctx, tx, s.sequences)
	})
	if err != nil {
		return fmt.Errorf("raise the sequences: %w", err)
	}
	return mark(ctx, databaseURL, managers)
}

func mark(ctx context.Context, databaseURL, managers string) error {
	db, err := store.Open(ctx, store.Config{DatabaseURL: databaseURL}, nil, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := policies.Restored(ctx, tx); err != nil {
			return err
		}
		if err := job.Restored(ctx, tx, ahead, managers); err != nil {
			return err
		}
		return store.Restored(ctx, tx)
	})
}

// within is the URL with a schema that is searched first.
func within(databaseURL, schema string) (string, error) {
	if _, err := pgx.ParseConfig(databaseURL); err != nil {
		return "", fmt.Errorf("DATABASE_URL: %w", err)
	}
	u, err := url.Parse(databaseURL)
	if err != nil || u.Scheme == "" {
		return databaseURL + " search_path=" + schema, nil //nolint:nilerr // the form of libpq's words
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// backup is a file that is being read.
type backup struct {
	manifest *Manifest
	files    map[string]*zip.File
}

func open(file io.ReaderAt, size int64) (*backup, error) {
	z, err := zip.NewReader(file, size)
	if err != nil {
		return nil, fmt.Errorf("this is no backup, or its end is missing: %w", err)
	}
	b := &backup{files: map[string]*zip.File{}}
	for _, f := range z.File {
		b.files[f.Name] = f
	}
	r, err := b.entry(manifestName)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	if err := json.NewDecoder(r).Decode(&b.manifest); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}
	if b.manifest.Format != format || len(b.manifest.Migrations) == 0 {
		return nil, fmt.Errorf("the backup has the format %d: this version reads %d", b.manifest.Format, format)
	}
	return b, nil
}

func (b *backup) entry(name string) (io.ReadCloser, error) {
	f, ok := b.files[name]
	if !ok {
		return nil, fmt.Errorf("this is no backup of Littoral: %s is missing", name)
	}
	return f.Open()
}

// fill puts the rows into the tables of an empty schema.
func (b *backup) fill(ctx context.Context, databaseURL string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		s, err := look(ctx, tx)
		if err != nil {
			return err
		}
		same := slices.EqualFunc(s.tables, b.manifest.Tables, func(here, there Table) bool {
			return here.Name == there.Name && slices.Equal(here.Columns, there.Columns)
		})
		if !same {
			return errors.New("the backup has other tables than its migrations make")
		}
		names := make([]string, len(s.tables))
		for i, t := range s.tables {
			names[i] = quote(t.Name)
		}
		if _, err := tx.Exec(ctx, `truncate `+strings.Join(names, ", ")); err != nil { // some migrations add rows
			return err
		}
		// What triggers keep is in the backup as well.
		if err := triggers(ctx, tx, "disable", names); err != nil {
			return err
		}
		for _, t := range b.manifest.Tables {
			if err := b.fillTable(ctx, tx, t); err != nil {
				return fmt.Errorf("%s: %w", t.Name, err)
			}
		}
		if err := triggers(ctx, tx, "enable", names); err != nil {
			return err
		}
		return advance(ctx, tx, b.manifest.Sequences)
	})
}

// triggers enables or disables those of the tables.
func triggers(ctx context.Context, tx pgx.Tx, what string, tables []string) error {
	for _, name := range tables {
		if _, err := tx.Exec(ctx, "alter table "+name+" "+what+" trigger user"); err != nil {
			return fmt.Errorf("%s triggers of %s: %w", what, name, err)
		}
	}
	return nil
}

func (b *backup) fillTable(ctx context.Context, tx pgx.Tx, t Table) error {
	r, err := b.entry(tablesIn + t.Name)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	sum := sha256.New()
	copied, err := tx.Conn().PgConn().CopyFrom(ctx, io.TeeReader(r, sum), "copy "+t.with()+" from stdin")
	if err != nil {
		return err
	}
	if copied.RowsAffected() != t.Rows || text(sum) != t.SHA256 {
		return errors.New("the backup was damaged")
	}
	return nil
}

// advance makes the sequences go on beyond whatever they have given since.
func advance(ctx context.Context, tx pgx.Tx, sequences map[string]int64) error {
	for name, last := range sequences {
		if _, err := tx.Exec(ctx, `select setval($1::text::regclass, $2)`, quote(name), last+ahead); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (b *backup) putObjects(ctx context.Context, o objects.Store) error {
	for _, object := range b.manifest.Objects {
		r, err := b.entry(objectsIn + object.Key)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(r)
		_ = r.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", object.Key, err)
		}
		sum := sha256.New()
		_, _ = sum.Write(body)
		if text(sum) != object.SHA256 {
			return fmt.Errorf("%s: the backup was damaged", object.Key)
		}
		if err := o.Put(ctx, object.Key, body); err != nil {
			return err
		}
	}
	return nil
}

const (
	// selectOwn are the tables, sequences and functions of a schema, but what extensions or tables own, as statements
	// name them.
	selectOwn = `select case c.relkind when 'S' then 'sequence' else 'table' end, format('%I.%I', $1::text, c.relname)
from pg_class c where c.relnamespace = to_regnamespace($1) and c.relkind in ('r', 'S')
  and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('e', 'a', 'i'))
union all select 'function', format('%I.%I(%s)', $1::text, p.proname, pg_get_function_identity_arguments(p.oid))
from pg_proc p where p.pronamespace = to_regnamespace($1)
  and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
order by 1 desc, 2` // tables, sequences, functions

	// selectGrants gives whoever may use a table, a column or a sequence of the schema $1 the same on that of the name in $2.
	selectGrants = `
select format('grant %s%s on %s %I.%I to %s', g.privilege_type, '(' || quote_ident(g.attname) || ')',
  case c.relkind when 'S' then 'sequence' else 'table' end, $2::text, c.relname,
  case g.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(g.grantee)) end)
from pg_class c cross join lateral (
  select null as attname, t.grantee, t.privilege_type from aclexplode(c.relacl) t union all
  select a.attname, t.grantee, t.privilege_type from pg_attribute a cross join aclexplode(a.attacl) t
  where a.attrelid = c.oid and not a.attisdropped and exists (select from pg_attribute o
    where o.attrelid = to_regclass(format('%I.%I', $2::text, c.relname)) and o.attname = a.attname and not o.attisdropped)) g
where c.relnamespace = to_regnamespace($1) and c.relkind in ('r', 'S') and g.grantee <> c.relowner
  and to_regclass(format('%I.%I', $2::text, c.relname)) is not null`
)

// replace puts what was restored where the present tables are, and these into a schema of their own.
func replace(ctx context.Context, conn *pgx.Conn, patience time.Duration) (former string, err error) {
	deadline := time.Now().Add(patience)
	for {
		former, err = tryReplace(ctx, conn)
		var pg *pgconn.PgError
		waits := errors.As(err, &pg) && (pg.Code == "55P03" || pg.Code == "40P01") // a lock was not granted; a deadlock
		if !waits || time.Now().After(deadline) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("replace what is in the database: %w", err)
	}
	return former, nil
}

func tryReplace(ctx context.Context, conn *pgx.Conn) (former string, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var public string
		if err := tx.QueryRow(ctx, `select current_schema(), to_char(now() at time zone 'utc', '"littoral_before_"YYYYMMDD"t"HH24MISS')`).
			Scan(&public, &former); err != nil {
			return err
		}
		present, err := owned(ctx, tx, public)
		if err != nil {
			return err
		}
		restored, err := owned(ctx, tx, beside)
		if err != nil {
			return err
		}
		if len(present) == 0 {
			former = ""
			if err := moveAll(ctx, tx, restored, public); err != nil {
				return err
			}
			return roles.Confine(ctx, tx)
		}
		// Whoever is in the midst of a transaction finishes it before, and whoever comes meanwhile begins with what was restored.
		// A wait for the locks makes others wait, so it is short, and repeated.
		var tables []string
		for _, o := range present {
			if o.kind == "table" {
				tables = append(tables, o.name)
			}
		}
		if len(tables) > 0 {
			if _, err := tx.Exec(ctx, `set local lock_timeout = '2s'`); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `lock table `+strings.Join(tables, ", ")+` in access exclusive mode`); err != nil {
				return err
			}
		}
		if err := execute(ctx, tx, selectGrants, public, beside); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `create schema `+quote(former)); err != nil {
			return err
		}
		if err := moveAll(ctx, tx, present, former); err != nil {
			return err
		}
		if err := moveAll(ctx, tx, restored, public); err != nil {
			return err
		}
		return roles.Confine(ctx, tx)
	})
	if err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, `drop schema `+beside)
	return former, err
}

type object struct{ kind, name string }

func owned(ctx context.Context, tx pgx.Tx, schema string) ([]object, error) {
	rows, err := tx.Query(ctx, selectOwn, schema)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o object, err error) { return o, row.Scan(&o.kind, &o.name) })
}

func moveAll(ctx context.Context, tx pgx.Tx, all []object, to string) error {
	for _, o := range all {
		if _, err := tx.Exec(ctx, fmt.Sprintf("alter %s %s set schema %s", o.kind, o.name, quote(to))); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	return nil
}

// execute runs the statements that a query returns.
func execute(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
