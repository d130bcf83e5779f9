package victorialogs_test

import (
	"testing"

	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/logs/logstest"
	"github.com/littoral-project/littoral/shared/logs/victorialogs"
	"github.com/littoral-project/littoral/test/logserver"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	_, remote := logserver.VictoriaLogs(t)
	logstest.Run(t, func(t *testing.T) logs.Store {
		t.Helper()
		return victorialogs.New(remote)
	})
}
