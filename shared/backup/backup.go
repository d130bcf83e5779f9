// Package backup writes everything that Littoral keeps into one file, and makes a database of such a file again.
//
// A backup is a zip file: each table as Postgres' COPY writes it, all of one snapshot; the objects of the object store;
// and, last, a manifest with checksums. A file without its end is therefore refused. COPY through the connection that
// everything else uses needs no client tools of the right version on the machine or in the image, as pg_dump would, and
// the schema need not be in the file, since the migrations of the program make it.
package backup

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/objects"
	"github.com/littoral-project/littoral/shared/problem"
)

// format is the version of the file's form. A program reads its own alone.
const format = 1

// The names in the file.
const (
	manifestName = "manifest.json"
	tablesIn     = "database/"
	objectsIn    = "objects/"
)

// Manifest says what is in a backup.
type Manifest struct {
	Format     int              `json:"format"`
	MadeAt     time.Time        `json:"madeAt"`     // the time of the snapshot, by the database's clock
	Migrations []int64          `json:"migrations"` // that its schema had
	Tables     []Table          `json:"tables"`     // in an order in which they can be filled
	Sequences  map[string]int64 `json:"sequences"`  // with the last value that was given
	Objects    []Object         `json:"objects"`
}

// Table is a table in a backup.
type Table struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
	Rows    int64    `json:"rows"`
	SHA256  string   `json:"sha256"`
}

// Object is an object of the object store in a backup.
type Object struct {
	Key    string `json:"key"`
	SHA256 string `json:"sha256"`
}

// The statements that look at a schema, which is the first in the search path.
const (
	// versions is goose's table of what was migrated; a backup has it as a list.
	versions = "goose_db_version"

	selectMigrations = `select version_id from ` + versions + ` where is_applied and version_id > 0 order by version_id`

	selectTables = `select c.relname, array_agg(a.attname::text order by a.attnum)
from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and c.relname <> '` + versions + `'
  and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
group by c.relname order by c.relname`

	selectReferences = `select child.relname, parent.relname from pg_constraint r
join pg_class child on child.oid = r.conrelid join pg_class parent on parent.oid = r.confrelid
where r.contype = 'f' and child.relnamespace = current_schema()::regnamespace and child.oid <> parent.oid`

	selectSequences = `select sequencename, coalesce(last_value, 0) from pg_sequences where schemaname = current_schema()
and sequencename not like '` + versions + `%'`
)

// Write writes a backup of the database and, if o is not nil, of the objects to w. Others may work meanwhile.
//
// Objects are read after the snapshot: what its rows name is there, unless it was pruned within these moments.
func Write(ctx context.Context, conn *pgx.Conn, o objects.Store, w io.Writer) (*Manifest, error) {
	m := &Manifest{Format: format}
	z := zip.NewWriter(w)
	if err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		return m.database(ctx, tx, z)
	}); err != nil {
		return nil, fmt.Errorf("back up the database: %w", err)
	}
	if o != nil {
		if err := m.objects(ctx, o, z); err != nil {
			return nil, fmt.Errorf("back up the objects: %w", err)
		}
	}
	entry, err := z.Create(manifestName)
	if err != nil {
		return nil, err
	}
	encoder := json.NewEncoder(entry)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(m); err != nil {
		return nil, err
	}
	return m, z.Close()
}

func (m *Manifest) database(ctx context.Context, tx pgx.Tx, z *zip.Writer) error {
	if err := tx.QueryRow(ctx, `select now()`).Scan(&m.MadeAt); err != nil {
		return err
	}
	m.MadeAt = m.MadeAt.UTC()
	s, err := look(ctx, tx)
	if err != nil {
		return err
	}
	m.Migrations, m.Sequences = s.migrations, s.sequences
	for _, t := range s.tables {
		entry, err := z.Create(tablesIn + t.Name)
		if err != nil {
			return err
		}
		sum := sha256.New()
		copied, err := tx.Conn().PgConn().CopyTo(ctx, io.MultiWriter(entry, sum), "copy "+t.with()+" to stdout")
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		t.Rows, t.SHA256 = copied.RowsAffected(), text(sum)
		m.Tables = append(m.Tables, t)
	}
	return nil
}

func (m *Manifest) objects(ctx context.Context, o objects.Store, z *zip.Writer) error {
	keys, err := o.List(ctx, "")
	if err != nil {
		return err
	}
	for _, key := range keys {
		body, err := o.Get(ctx, key)
		if problem.KindOf(err) == problem.NotFound {
			continue // deleted since it was listed
		}
		if err != nil {
			return err
		}
		// Objects are compressed already.
		entry, err := z.CreateHeader(&zip.FileHeader{Name: objectsIn + key, Method: zip.Store})
		if err != nil {
			return err
		}
		if _, err := entry.Write(body); err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		m.Objects = append(m.Objects, Object{key, hex.EncodeToString(sum[:])})
	}
	return nil
}

// with is the table with its columns, as statements write it.
func (t Table) with() string {
	quoted := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		quoted[i] = quote(c)
	}
	return quote(t.Name) + " (" + strings.Join(quoted, ", ") + ")"
}

func quote(names ...string) string { return pgx.Identifier(names).Sanitize() }

func text(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// schema is what a database has at present.
type schema struct {
	migrations []int64
	tables     []Table // those that others refer to come first
	sequences  map[string]int64
}

// look reads the schema that is the first in the search path.
func look(ctx context.Context, tx pgx.Tx) (*schema, error) {
	s := &schema{sequences: map[string]int64{}}
	rows, err := tx.Query(ctx, selectMigrations)
	if err != nil {
		return nil, err
	}
	if s.migrations, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	if rows, err = tx.Query(ctx, selectTables); err != nil {
		return nil, err
	}
	tables, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t Table, err error) {
		return t, row.Scan(&t.Name, &t.Columns)
	})
	if err != nil {
		return nil, fmt.Errorf("read the tables: %w", err)
	}
	if rows, err = tx.Query(ctx, selectReferences); err != nil {
		return nil, err
	}
	before := map[string][]string{}
	var child, parent string
	if _, err := pgx.ForEachRow(rows, []any{&child, &parent}, func() error {
		before[child] = append(before[child], parent)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read the references: %w", err)
	}
	if s.tables, err = inOrder(tables, before); err != nil {
		return nil, err
	}
	if rows, err = tx.Query(ctx, selectSequences); err != nil {
		return nil, err
	}
	var name string
	var last int64
	if _, err := pgx.ForEachRow(rows, []any{&name, &last}, func() error {
		s.sequences[name] = last
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read the sequences: %w", err)
	}
	return s, nil
}

// inOrder puts each table after those that it refers to.
func inOrder(tables []Table, before map[string][]string) ([]Table, error) {
	var sorted []Table
	done := map[string]bool{}
	for len(sorted) < len(tables) {
		n := len(sorted)
		for _, t := range tables {
			waits := slices.ContainsFunc(before[t.Name], func(parent string) bool { return !done[parent] })
			if !done[t.Name] && !waits {
				sorted, done[t.Name] = append(sorted, t), true
			}
		}
		if len(sorted) == n {
			return nil, fmt.Errorf("tables refer to each other in a circle")
		}
	}
	return sorted, nil
}
