package trace_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/trace"
)

func TestStart(t *testing.T) {
	t.Parallel()
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	ctx := trace.Start(context.Background(), parent)
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", trace.ID(ctx), "the trace goes on")
	require.NotEqual(t, parent, trace.Parent(ctx), "with a span of its own")

	for _, bad := range []string{"", "junk", "00-" + "00000000000000000000000000000000" + "-00f067aa0ba902b7-01", parent + "\n"} {
		fresh := trace.Start(context.Background(), bad)
		require.Len(t, trace.ID(fresh), 32)
		require.NotEqual(t, "4bf92f3577b34da6a3ce929d0e0e4736", trace.ID(fresh))
	}
	require.Empty(t, trace.ID(context.Background()))
}

func TestCauseSurvivesANewSpan(t *testing.T) {
	t.Parallel()
	ctx := trace.Start(trace.WithCause(context.Background(), "caller alice"), "")
	require.Equal(t, "caller alice", trace.Cause(ctx))
}
