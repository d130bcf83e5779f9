package application_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/store"
)

// TestWhatComposeFilesAskForIsStored: whatever reads a stored descriptor places it as it was planned, and reads no compose file.
func TestWhatComposeFilesAskForIsStored(t *testing.T) {
	t.Parallel()
	const document = "name: shop\ncomponents:\n- name: web\n  type: docker\n  requirements: {cpu: 2}\n  manifests:\n" +
		"  - {name: c, manifest: {services: {a: {image: x, deploy: {resources: {limits: {cpus: '1', memory: 1g}}}}}}}\n"
	w := applicationtest.New(t)
	id := applicationtest.Submit(t, w.DB, document).ID
	requires := func(cpuMilli, memoryBytes int64) {
		t.Helper()
		app, err := w.Get(id).Parsed()
		require.NoError(t, err)
		require.Equal(t, cpuMilli, app.Components[0].Requirements.CPUMilli)
		require.Equal(t, memoryBytes, app.Components[0].Requirements.MemoryBytes)
		revision, err := application.RevisionOf(t.Context(), w.DB, id, 0)
		require.NoError(t, err)
		was, err := revision.Parsed()
		require.NoError(t, err)
		require.Equal(t, app.Components[0].Requirements, was.Components[0].Requirements)
		require.Equal(t, app.Derived, was.Derived)
		require.Equal(t, memoryBytes, applicationtest.Job(t, w.DB, id).MemoryBytes)
	}
	requires(2000, 1<<30)
	require.Equal(t, 7, w.Get(id).Needs[0].MemoryLine)
	update := func(document string) {
		w.Must(func(ctx context.Context, tx *store.Tx) error {
			_, err := applicationtest.Update(ctx, tx, id, []byte(document), time.Minute)
			return err
		})
	}
	update(strings.ReplaceAll(document, "1g", "2g"))
	requires(2000, 2<<30)
	update(strings.ReplaceAll(document, ", memory: 1g", ""))
	requires(2000, 0)
	require.Empty(t, w.Get(id).Needs)
}
