package host

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/cli"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

// TestTheCommandLineFindsTheHostByItsHome: the home is all it needs to know, at whatever address the host serves.
func TestTheCommandLineFindsTheHostByItsHome(t *testing.T) {
	t.Parallel()
	o := options(newHome(t))
	o.Database, o.Fleet = storetest.URL(t), FleetNone
	h, err := Start(t.Context(), o)
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	env := map[string]string{"LITTORAL_HOME": o.Home}
	sh := cli.Shell{Stdout: &stdout, Stderr: &stderr, Getenv: func(name string) string { return env[name] }}
	code := sh.Run(t.Context(), []string{"get", "apps"})
	stop(t, h)
	require.Zero(t, code, stderr.String())
	require.Equal(t, "No applications.\n", stderr.String())
	require.NoFileExists(t, filepath.Join(o.Home, api.AddressFile), "nobody serves there any more")
}
