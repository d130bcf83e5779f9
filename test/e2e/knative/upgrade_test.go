package knative_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The next version: a migration beyond all others that adds to tables in use, and a line that changes every program.
const (
	nextMigration = "99999_e2e.sql"
	nextSchema    = `-- +goose Up
alter table applications add column e2e text;
alter table jobs add column e2e bigint not null default 0;
`
	removeNextSchema = `alter table applications drop column if exists e2e; alter table jobs drop column if exists e2e;
		delete from goose_db_version where version_id = 99999`
	nextProgram = `package function

import "os"

func init() { _ = os.Setenv("LITTORAL_E2E_VERSION", "next") }
`
)

// TestUpgradeUnderTraffic: the next version, with a migration and a change in every program, is deployed as an operator
// does it, while callers hand in and read applications; afterwards this version again, over the newer schema.
func TestUpgradeUnderTraffic(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"KO_DOCKER_REPO", "OVERLAY"} {
		if os.Getenv(name) == "" {
			t.Skip(name + " is not set, as for make deploy: the next version cannot be built and applied")
		}
	}
	if _, err := w.Kubectl("get", "statefulset", "postgres"); err != nil {
		t.Skip("Postgres is not this namespace's own: its schema could not be put back")
	}
	here := filepath.Join("..", "..", "..")
	next := nextVersion(t, here)
	t.Cleanup(func() {
		w.deploy(t, here)
		w.kubectl("exec", "postgres-0", "--", "psql", "-h", "/tmp", "-U", "littoral", "-d", "littoral",
			"-v", "ON_ERROR_STOP=1", "-c", removeNextSchema)
	})
	before := w.revisions()
	w.during(t, "e2e-upgrade", func(func()) { w.deploy(t, next) })
	after := w.revisions()
	require.Len(t, after, len(before))
	for function, revision := range after {
		require.NotEqual(t, before[function], revision, function)
	}
}

// nextVersion copies what is built and applied, and changes it.
func nextVersion(t *testing.T, here string) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{"functions", "shared", "triggers", "infra", "knative", "scripts"} {
		require.NoError(t, os.CopyFS(filepath.Join(dir, folder), os.DirFS(filepath.Join(here, folder))))
	}
	for _, name := range []string{"go.mod", "go.sum", ".ko.yaml"} {
		text, err := os.ReadFile(filepath.Join(here, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	add := func(text string, path ...string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Join(path...)), []byte(text), 0o600))
	}
	add(nextSchema, "shared", "migrate", "sql", nextMigration)
	add(nextProgram, "shared", "function", "e2e.go")
	return dir
}

// deploy is what "make deploy" does, in a folder with the sources.
func (w *world) deploy(t *testing.T, dir string) {
	t.Helper()
	ko, err := exec.LookPath("ko")
	if err != nil {
		ko, err = filepath.Abs(filepath.Join("..", "..", "..", "bin", "tools", "ko")) // where the Makefile puts it
		require.NoError(t, err)
	}
	cmd := exec.Command(filepath.Join("scripts", "deploy", "deploy"), "up") //nolint:noctx // also runs when the test's context is done
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "KO="+ko)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// revisions is what serves, by function.
func (w *world) revisions() map[string]string {
	w.t.Helper()
	revisions := map[string]string{}
	for line := range strings.Lines(w.kubectl("get", "ksvc", "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.status.traffic[0].revisionName}{"\n"}{end}`)) {
		function, revision, _ := strings.Cut(strings.TrimSpace(line), " ")
		revisions[function] = revision
	}
	return revisions
}
