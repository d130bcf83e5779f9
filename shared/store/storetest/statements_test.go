package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store"
)

// TestWhoseStatementItIs: a test that only says that it is a function is none.
func TestWhoseStatementItIs(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ source, as, want string }{
		{}, {source: "/functions/acm-apps"}, {source: "/test"}, {as: "acm-apps", want: "acm-apps"},
	} {
		ctx := t.Context()
		if row.source != "" {
			ctx = store.WithSource(ctx, row.source)
		}
		if row.as != "" {
			ctx = As(ctx, row.as)
		}
		require.Equal(t, row.want, functionOf(ctx))
	}
}

func TestStatementsAreKeptOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 { // processes
		s := &statements{dir: dir, seen: map[string]map[string]bool{}}
		for _, sql := range []string{"select 1", "select 'a\nb'", "select 1"} {
			s.note(As(t.Context(), "acm-apps"), sql)
		}
		s.note(t.Context(), "select 2")
	}
	list, err := ReadStatements(dir, "acm-apps")
	require.NoError(t, err)
	require.Equal(t, []string{"select 1", "select 'a\nb'"}, list)
	list, err = ReadStatements(dir, "acm-status")
	require.NoError(t, err)
	require.Empty(t, list)
}
