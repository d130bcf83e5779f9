package kinds_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
)

func TestTheAPIKnowsTheSameOrchestrators(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../api/openapi.yaml")
	require.NoError(t, err)
	require.Contains(t, string(page), "Orchestrator: {type: string, enum: ["+strings.Join(kinds.Names(), ", ")+"]}")
	for _, name := range kinds.Names() {
		kind, known := kinds.Of(name)
		require.True(t, known)
		require.NotEmpty(t, kind.Engine, name)
	}
	_, known := kinds.Of("")
	require.False(t, known)
}
