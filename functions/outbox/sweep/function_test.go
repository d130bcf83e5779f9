package sweep_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/outbox/sweep"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
)

func TestNew_refusesBatchesOfNothing(t *testing.T) {
	t.Parallel()
	of := func(batch string) error {
		given := settings.Map(map[string]string{"OUTBOX_BATCH": batch})
		_, err := sweep.New(function.Platform{Settings: given}.Env("outbox-sweep"))
		return err
	}
	require.ErrorContains(t, of("0"), "OUTBOX_BATCH")
	require.ErrorContains(t, of("-1"), "OUTBOX_BATCH")
	require.NoError(t, of("1"))
}
