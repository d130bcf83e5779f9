package trace_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/trace"
)

const (
	id     = "4bf92f3577b34da6a3ce929d0e0e4736"
	span   = "00f067aa0ba902b7"
	parent = "00-" + id + "-" + span + "-01"
)

func TestStart(t *testing.T) {
	t.Parallel()
	ctx := trace.Start(t.Context(), parent)
	require.Equal(t, id, trace.ID(ctx), "the trace goes on")
	require.NotEqual(t, parent, trace.Parent(ctx), "with a span of its own")
	require.Equal(t, span, trace.Above(ctx), "below the caller's")
	require.Equal(t, "00-"+id+"-"+trace.Span(ctx)+"-01", trace.Parent(ctx))

	for _, bad := range []string{
		"", "junk", "00-" + strings.Repeat("0", 32) + "-" + span + "-01", "00-" + id + "-" + strings.Repeat("0", 16) + "-01",
		parent + "\n", parent + "-more", strings.ToUpper(parent), "ff" + parent[2:], "0x" + parent[2:], parent[:54] + "g",
		"01" + parent[2:] + "more",
	} {
		fresh := trace.Start(t.Context(), bad)
		require.Len(t, trace.ID(fresh), 32)
		require.NotEqual(t, id, trace.ID(fresh), bad)
		require.Empty(t, trace.Above(fresh))
	}
	require.Equal(t, id, trace.ID(trace.Start(t.Context(), "01"+parent[2:]+"-more")), "a later version begins alike")
	require.Empty(t, trace.ID(t.Context()))
	require.Empty(t, trace.Span(t.Context()))
}

func TestSampledIsHandedOn(t *testing.T) {
	t.Parallel()
	require.True(t, trace.Sampled(trace.Start(t.Context(), "")))
	require.True(t, trace.Sampled(trace.Start(t.Context(), parent)))
	not := trace.Start(t.Context(), parent[:53]+"00")
	require.False(t, trace.Sampled(not))
	require.True(t, strings.HasSuffix(trace.Parent(not), "-00"))
	require.False(t, trace.Sampled(trace.Start(not, trace.Parent(not))))

	turned := trace.WithSampled(trace.Start(t.Context(), parent), false)
	require.True(t, strings.HasSuffix(trace.Parent(turned), "-00"))
	require.True(t, trace.Sampled(trace.WithSampled(turned, true)))
	require.Empty(t, trace.Parent(trace.WithSampled(t.Context(), true)), "outside a trace there is nothing to sample")
}

func TestStateIsHandedOnAsItCame(t *testing.T) {
	t.Parallel()
	ctx := trace.WithState(trace.Start(t.Context(), parent), "vendor=1,other=2")
	require.Equal(t, "vendor=1,other=2", trace.State(ctx))
	require.Empty(t, trace.State(trace.Start(ctx, parent)), "it belongs to the parent it came with")
	for _, bad := range []string{strings.Repeat("x", 513), "a=\nb", "a=ü"} {
		require.Empty(t, trace.State(trace.WithState(trace.Start(t.Context(), parent), bad)))
	}
}

func TestCauseSurvivesANewSpan(t *testing.T) {
	t.Parallel()
	ctx := trace.Start(trace.WithCause(t.Context(), "caller alice"), "")
	require.Equal(t, "caller alice", trace.Cause(ctx))
}
