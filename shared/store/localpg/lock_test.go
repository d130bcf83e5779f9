package localpg_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store/localpg"
)

func TestALockIsReleasedAlthoughAChildHasItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := localpg.Lock(path)
	require.NoError(t, err)
	_, err = localpg.Lock(path)
	require.ErrorIs(t, err, localpg.ErrLocked)

	// A child process has every open file of its parent from its fork until it becomes its program.
	child, err := syscall.Dup(int(held.Fd()))
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Close(child)) }()

	require.NoError(t, localpg.Unlock(held))
	again, err := localpg.Lock(path)
	require.NoError(t, err)
	require.NoError(t, localpg.Unlock(again))
}
