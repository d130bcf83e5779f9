package knative_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/test/deployed"
)

// TestABackupIsRestored goes back to a backup as infra/README.md says, with the programs that an operator uses. What was deleted
// since runs again, and what was made since is left alone, though nobody knows it any more.
func TestABackupIsRestored(t *testing.T) {
	c := newContinuum(t)
	needsBuilds(t)
	if _, err := c.Kubectl("get", "statefulset", "postgres"); err != nil {
		t.Skip("Postgres is not this namespace's own: what else is in it would go back too")
	}
	c.only("cluster1")
	program := filepath.Join(t.TempDir(), "littoral-backup")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, filepath.Join(here, "infra", "backup")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	file := filepath.Join(t.TempDir(), "littoral.zip")
	run := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), "DATABASE_URL="+c.databaseURL())
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		t.Logf("%s: %s", strings.Join(args, " "), strings.TrimSpace(string(out)))
	}

	kept := c.handIn(t, "e2e-backup-kept")
	c.runs(kept)
	run("backup", file)
	later := c.handIn(t, "e2e-backup-later")
	c.runs(later)
	c.remove(kept.ID)
	c.eventually("what was deleted has gone from the cluster", func() bool { return !c.has(kept) })
	uid := c.uid(later)

	start := time.Now()
	run("restore", file)
	c.deploy(t, here, "up", "BUILT=1")
	c.seen()
	c.runs(kept)
	t.Logf("what the backup has runs %s after the restore began, make deploy included", time.Since(start).Round(time.Second))
	a, err := c.try(auth.Viewer, http.MethodGet, "/jobmanager/groups/"+later.ID, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, a.status, "what was made since is not known")
	c.tick("deploymentmanager-sync-ocm")
	require.Equal(t, uid, c.uid(later), "what was made since was not touched")
}

// databaseURL is the address of Postgres itself, not of the pooler.
func (c *continuum) databaseURL() string {
	c.t.Helper()
	password, err := c.Secret("postgres", "clear")
	require.NoError(c.t, err)
	at, err := c.Resolve("postgres." + deployed.Namespace + ".svc.cluster.local:5432")
	require.NoError(c.t, err)
	return fmt.Sprintf("postgres://littoral:%s@%s/littoral", password, at)
}

// handIn hands an application in. In the end whatever of it is in the hub goes, also if the controller does not know it.
func (c *continuum) handIn(t *testing.T, name string) api.Application {
	t.Helper()
	var g api.Application
	descriptor := strings.Replace(c.descriptor("backup"), "name: e2e-ocm", "name: "+name, 1)
	require.Equal(t, http.StatusCreated, c.ask(auth.Operator, http.MethodPost, "/jobmanager/groups", descriptor, &g,
		"Idempotency-Key", uuid.NewString()))
	t.Cleanup(func() {
		c.remove(g.ID)
		for _, cluster := range []string{"cluster1", "edge1"} {
			c.kubectl("delete", "manifestworks", "-n", cluster, "-l", "app.icos.eu/instance="+g.ID, "--ignore-not-found")
		}
	})
	return g
}

// runs waits until the application is available and its server is in the cluster.
func (c *continuum) runs(g api.Application) {
	c.t.Helper()
	c.eventually(g.Name+" runs", func() bool {
		var now api.Application
		return c.ask(auth.Viewer, http.MethodGet, "/jobmanager/groups/"+g.ID, "", &now) == http.StatusOK &&
			now.Status == api.StatusAvailable && c.has(g)
	})
}

// has reports whether the application's server is in cluster1.
func (c *continuum) has(g api.Application) bool { return c.uid(g) != "" }

// uid is that of the application's server in cluster1, "" if there is none.
func (c *continuum) uid(g api.Application) string {
	out, err := exec.Command("kubectl", "-n", g.Namespace, "get", "deployment", "web", "--ignore-not-found", "-o",
		"jsonpath={.metadata.uid}").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
