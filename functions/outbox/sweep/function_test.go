package sweep_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/outbox/sweep"
	"github.com/littoral-project/littoral/shared/function"
)

func TestNew_refusesBatchesOfNothing(t *testing.T) {
	for _, batch := range []string{"0", "-1"} {
		t.Setenv("OUTBOX_BATCH", batch)
		_, err := sweep.New(function.Platform{Settings: os.LookupEnv}.Env("outbox-sweep"))
		require.ErrorContains(t, err, "OUTBOX_BATCH")
	}
	t.Setenv("OUTBOX_BATCH", "1")
	_, err := sweep.New(function.Platform{Settings: os.LookupEnv}.Env("outbox-sweep"))
	require.NoError(t, err)
}
