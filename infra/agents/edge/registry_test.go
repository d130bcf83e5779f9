package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/registry"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/littoral-project/littoral/shared/job"
)

// envRegistry names the program of a registry.
const envRegistry = "LITTORAL_TEST_REGISTRY"

// Who may fetch from the registry.
const (
	registryUser     = "harbour"
	registryPassword = "s3cret:of the quay"
)

// startRegistry starts a registry on loopback that asks for a name and a password, and returns its address.
func startRegistry(t *testing.T) string {
	t.Helper()
	program := os.Getenv(envRegistry)
	if program == "" {
		t.Skipf("%s names no registry; \"make e2e-docker\" builds one", envRegistry)
	}
	dir := t.TempDir()
	hash, err := bcrypt.GenerateFromPassword([]byte(registryPassword), bcrypt.MinCost)
	require.NoError(t, err)
	users, config := filepath.Join(dir, "htpasswd"), filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(users, []byte(registryUser+":"+string(hash)+"\n"), 0o600))
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `version: 0.1
log: {level: info}
storage: {filesystem: {rootdirectory: %q}}
http: {addr: "127.0.0.1:0"}
auth: {htpasswd: {realm: quay, path: %q}}
`, dir+"/data", users), 0o600))
	c := exec.CommandContext(t.Context(), program, "serve", config)
	c.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	log, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	listens := regexp.MustCompile(`listening on (127\.0\.0\.1:[0-9]+)`)
	said := bufio.NewScanner(log)
	for said.Scan() {
		if at := listens.FindStringSubmatch(said.Text()); at != nil {
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return at[1]
		}
	}
	require.Fail(t, "the registry has ended", said.Err())
	return ""
}

// TestARegistryThatAsksForAPassword_real: an image that is in such a registry only is fetched with the file of "docker login",
// once it has the right password. Until then the application says what it lacks.
func TestARegistryThatAsksForAPassword_real(t *testing.T) {
	m := onReal(t)
	at := startRegistry(t)
	anybody, err := http.Get("http://" + at + "/v2/")
	require.NoError(t, err)
	require.NoError(t, anybody.Body.Close())
	require.Equal(t, http.StatusUnauthorized, anybody.StatusCode)

	image := at + "/private/hello:1"
	ctx := t.Context()
	_, err = m.client.ImageTag(ctx, client.ImageTagOptions{Source: "hello:1", Target: image})
	require.NoError(t, err)
	auth, err := authconfig.Encode(registry.AuthConfig{Username: registryUser, Password: registryPassword, ServerAddress: at})
	require.NoError(t, err)
	pushed, err := m.client.ImagePush(ctx, image, client.ImagePushOptions{RegistryAuth: auth})
	require.NoError(t, err)
	require.NoError(t, pushed.Wait(ctx))
	require.NoError(t, pushed.Close())
	_, err = m.client.ImageRemove(ctx, image, client.ImageRemoveOptions{})
	require.NoError(t, err)

	file := filepath.Join(t.TempDir(), "config.json")
	write := func(password string) {
		t.Helper()
		signed := base64.StdEncoding.EncodeToString([]byte(registryUser + ":" + password))
		require.NoError(t, os.WriteFile(file+".new", []byte(`{"auths": {"`+at+`": {"auth": "`+signed+`"}}}`), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
	}
	m.more = []string{"EDGE_REGISTRY_AUTH_FILE=" + file}
	m.start()
	id := m.submit(image)
	refused := func(why string) {
		t.Helper()
		m.await(func() bool {
			_, conditions := m.only()
			seen := job.Job{Conditions: conditions}
			c := seen.Condition(job.ConditionDegraded)
			if c == nil || c.Status != "True" {
				return false
			}
			require.Equal(t, "ImagePullFailed", c.Reason, c.Message)
			require.Contains(t, c.Message, "image "+image)
			require.Regexp(t, "(?i)auth|credentials", c.Message)
			require.NotContains(t, c.Message, registryPassword)
			return true
		}, func() string { _, conditions := m.only(); return fmt.Sprintf("%s: %v", why, conditions) })
		require.Empty(t, m.containers(), why)
	}
	refused("nobody has signed in")
	write("wrong")
	refused("with a wrong password")
	write(registryPassword)
	m.run(image[strings.LastIndexByte(image, '/')+1:], 2, "signed in")
	m.reported("harbour", "signed in")
	m.delete(id)
	m.gone("removed")
	_, err = m.client.ImageRemove(ctx, image, client.ImageRemoveOptions{})
	require.NoError(t, err)
}
