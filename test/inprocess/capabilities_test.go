package inprocess_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/test/capabilities"
	"github.com/littoral-project/littoral/test/inprocess"
)

func TestWhateverAFunctionMayDeclareRunsHere(t *testing.T) {
	t.Parallel()
	var seen []string
	sys := inprocess.Start(t, capabilities.Entries(func(subject string) { seen = append(seen, subject) }))
	capabilities.Check(t, sys.URL, sys.Token(auth.Viewer))

	const path = "/apis/test.example/v1/namespaces/littoral/things/a"
	require.NoError(t, sys.Broker.Change(t.Context(), "test-watch", events.ObjectAdded, path, map[string]any{"kind": "Thing"}))
	require.Equal(t, []string{events.ObjectAdded + " " + path}, seen)
}
