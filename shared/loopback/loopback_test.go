package loopback_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/loopback"
)

func TestFree(t *testing.T) {
	t.Parallel()
	address, err := loopback.Free(t.Context())
	require.NoError(t, err)
	require.True(t, address.Addr().IsLoopback())
	require.Less(t, address.Port(), uint16(32768), "connections of other processes take ports from there on")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address.String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"littoral.lab.localhost:80":   "localhost:80",
		"Littoral.Localhost.:8080":    "localhost:8080",
		"localhost:80":                "localhost:80",
		"littoral.example:443":        "littoral.example:443",
		"localhost.example:443":       "localhost.example:443",
		"notlocalhost:80":             "notlocalhost:80",
		"[::1]:80":                    "[::1]:80",
		"127.0.0.1:80":                "127.0.0.1:80",
		"without.a.port.or.localhost": "without.a.port.or.localhost",
	} {
		require.Equal(t, want, loopback.Address(address), address)
	}
}
