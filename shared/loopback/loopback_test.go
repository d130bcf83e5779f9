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
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address.String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
}
