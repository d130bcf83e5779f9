// Backup writes all that Littoral keeps into a file, and restores it: "littoral backup" and "littoral restore" become
// this program, and on a cluster a CronJob runs it.
//
//	littoral-backup backup [--keep N] FILE|FOLDER
//	littoral-backup restore FILE
//	littoral-backup restore --mark
//
// DATABASE_URL must lead to Postgres itself, not to a pooler.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/backup"
	"github.com/littoral-project/littoral/shared/objects"
	"github.com/littoral-project/littoral/shared/objects/open"
	"github.com/littoral-project/littoral/shared/settings"
)

type config struct {
	DatabaseURL string        `envconfig:"DATABASE_URL" required:"true"`
	ManagerID   string        `envconfig:"DEPLOYMENTMANAGER_ID"`
	Patience    time.Duration `envconfig:"PATIENCE" default:"2m"` // for transactions that run while a backup is put in place

	Objects open.Config
}

// The names of backups in a folder sort by time.
const (
	prefix, suffix = "littoral-", ".zip"
	named          = prefix + "20060102T150405Z" + suffix
)

const usage = `usage: littoral backup [--keep N] FILE|FOLDER    write a backup; into a folder under the time as its name
       littoral restore FILE                     make a backup the content of the database
       littoral restore --mark                   only prepare a database that something else has restored

DATABASE_URL is the address of Postgres itself, not of a pooler; OBJECTS_URL is that of the objects, if there are any.
A backup holds all that the database does, secrets among it: see infra/README.md (Backup and restore).
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(exit(run(ctx, os.Args[1:], os.LookupEnv, os.Stdout), os.Stderr))
}

var errUsage = errors.New("wrong usage")

func exit(err error, stderr io.Writer) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(stderr, usage)
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "littoral-backup: %v\n%s", err, usage)
		return 2
	}
	fmt.Fprintf(stderr, "littoral-backup: %v\n", err)
	return 1
}

func run(ctx context.Context, args []string, lookup settings.Lookup, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var keep int
	var markOnly bool
	switch args[0] {
	case "backup":
		flags.IntVar(&keep, "keep", 0, "")
	case "restore":
		flags.BoolVar(&markOnly, "mark", false, "")
	case "-h", "--help":
		return flag.ErrHelp
	default:
		return fmt.Errorf("%w: there is no command %q", errUsage, args[0])
	}
	if err := flags.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if files := flags.NArg(); (files != 1 || markOnly) && (files != 0 || !markOnly) {
		return fmt.Errorf("%w: name one file", errUsage)
	}
	var c config
	if err := settings.Read(lookup, "", &c); err != nil {
		return err
	}
	o, err := open.Store(c.Objects, http.DefaultClient)
	if err != nil {
		return err
	}
	switch {
	case args[0] == "backup":
		return c.write(ctx, o, flags.Arg(0), keep, out)
	case markOnly:
		if err := backup.Mark(ctx, c.DatabaseURL, c.managers()); err != nil {
			return err
		}
		fmt.Fprintln(out, "the database is prepared: run make deploy now")
		return nil
	}
	return c.restore(ctx, o, flags.Arg(0), out)
}

// managers is the owner_id of our deployment managers, as a pattern of like.
func (c *config) managers() string {
	return cmp.Or(strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(c.ManagerID), "deploymentmanager-%")
}

// write writes the backup beside its place first, so that there is never half of one.
func (c *config) write(ctx context.Context, o objects.Store, to string, keep int, out io.Writer) error {
	info, err := os.Stat(to)
	folder := err == nil && info.IsDir()
	if keep > 0 && !folder {
		return fmt.Errorf("%w: --keep needs a folder", errUsage)
	}
	if folder {
		to = filepath.Join(to, time.Now().UTC().Format(named))
	}
	conn, err := pgx.Connect(ctx, c.DatabaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	file, err := os.CreateTemp(filepath.Dir(to), ".littoral-backup-") // for nobody else to read
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	m, err := backup.Write(ctx, conn, o, file)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), to); err != nil {
		return err
	}
	var rows int64
	for _, t := range m.Tables {
		rows += t.Rows
	}
	fmt.Fprintf(out, "%s: %d rows of %d tables, %d objects\n", to, rows, len(m.Tables), len(m.Objects))
	if keep > 0 {
		return prune(filepath.Dir(to), keep)
	}
	return nil
}

// prune deletes the oldest backups of the folder, but as many.
func prune(folder string, keep int) error {
	names, err := filepath.Glob(filepath.Join(folder, prefix+"????????T??????Z"+suffix))
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names[:max(len(names)-keep, 0)] {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

func (c *config) restore(ctx context.Context, o objects.Store, from string, out io.Writer) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	done, err := backup.Restore(ctx, file, info.Size(), backup.Options{
		DatabaseURL: c.DatabaseURL, Objects: o, Managers: c.managers(), Patience: c.Patience,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "restored: what Littoral knew at %s\n", done.Manifest.MadeAt.Format(time.RFC3339))
	if done.Former != "" {
		fmt.Fprintf(out, "what was there before is in the schema %s; when you need it no more: drop schema %[1]s cascade\n", done.Former)
	}
	fmt.Fprintln(out, "run make deploy now, and see infra/README.md (Backup and restore) for what was created or deleted since")
	return nil
}
