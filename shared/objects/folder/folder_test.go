package folder_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/durable"
	"github.com/littoral-project/littoral/shared/objects"
	"github.com/littoral-project/littoral/shared/objects/folder"
	"github.com/littoral-project/littoral/shared/objects/objectstest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	objectstest.Run(t, func(t *testing.T) objects.Store {
		t.Helper()
		return folder.New(filepath.Join(t.TempDir(), "made", "later"))
	})
}

func TestWhatAKilledWriterLeftIsNoObject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, durable.Halfway+"123"), []byte("half"), 0o600))
	keys, err := folder.New(dir).List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, keys)
}
