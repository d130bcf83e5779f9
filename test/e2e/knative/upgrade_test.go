package knative_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/test/deployed"
)

// The next version: a migration after all others that changes tables in use, and a line that changes every program.
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

// TestUpgradeUnderTraffic deploys the next version, with a migration and a change in every program, as an operator
// does, while callers submit and read applications. Then, under the same traffic, it deploys this version again on the
// newer schema.
func TestUpgradeUnderTraffic(t *testing.T) {
	w := newWorld(t)
	needsBuilds(t)
	if _, err := w.Kubectl("get", "statefulset", "postgres"); err != nil {
		t.Skip("Postgres is not this namespace's own: its schema could not be put back")
	}
	next := nextVersion(t)
	t.Cleanup(func() {
		w.deploy(t, here, "up") // also if it was interrupted
		w.kubectl("exec", "postgres-0", "--", "psql", "-h", "/tmp", "-U", "littoral", "-d", "littoral",
			"-v", "ON_ERROR_STOP=1", "-c", removeNextSchema)
	})
	for _, version := range []string{next, here} {
		w.deploy(t, version, "images")
	}
	before := w.revisions()
	w.during(t, "e2e-upgrade", func(flow func()) {
		for _, version := range []string{next, here} {
			w.deploy(t, version, "up", "BUILT=1") // a build would take what the cluster serves with
			after := w.revisions()
			require.Len(t, after, len(before))
			for function, revision := range after {
				require.NotEqual(t, before[function], revision, function)
			}
			before = after
			flow()
		}
	})
}

// TestTheSameSourceGivesTheSameImages builds in another folder and gets the digests of the running images.
func TestTheSameSourceGivesTheSameImages(t *testing.T) {
	w := newWorld(t)
	needsBuilds(t)
	dir := thisVersion(t)
	w.deploy(t, dir, "images")
	built, err := os.ReadFile(filepath.Join(dir, "bin", "deploy", "resolved.yaml"))
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(w.kubectl("get", "ksvc", "-o",
		`jsonpath={range .items[*]}{.spec.template.spec.containers[0].image}{"\n"}{end}`)) {
		require.Contains(t, string(built), "image: "+strings.TrimSpace(line)+"\n")
		n++
	}
	require.Equal(t, strings.Count(string(built), "\napiVersion: serving.knative.dev/v1\n"), n, "functions of the overlay")
}

// here is the project's folder.
var here = filepath.Join("..", "..", "..")

func needsBuilds(t *testing.T) {
	t.Helper()
	for _, name := range []string{"KO_DOCKER_REPO", "OVERLAY"} {
		if os.Getenv(name) == "" {
			t.Skip(name + " is not set, as for make deploy: no version can be built")
		}
	}
}

// thisVersion copies the files that are built and applied.
func thisVersion(t *testing.T) string {
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
	return dir
}

// nextVersion is this version with the changes.
func nextVersion(t *testing.T) string {
	t.Helper()
	dir := thisVersion(t)
	add := func(text string, path ...string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Join(path...)), []byte(text), 0o600))
	}
	add(nextSchema, "shared", "migrate", "sql", nextMigration)
	add(nextProgram, "shared", "function", "e2e.go")
	return dir
}

// deploy runs the script of "make deploy" in a folder with the sources, with further settings as NAME=value.
func (w *world) deploy(t *testing.T, dir, what string, env ...string) {
	t.Helper()
	ko, err := deployed.Ko(context.Background()) // also after the test's context has ended
	require.NoError(t, err)
	cmd := exec.Command(filepath.Join("scripts", "deploy", "deploy"), what)
	cmd.Dir, cmd.Env = dir, slices.Concat(os.Environ(), []string{"KO=" + ko}, env)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// revisions returns the serving revision of each function.
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
