package topology

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPick_cutsWhatIsWantedOutOfADocument(t *testing.T) {
	t.Parallel()
	body := []byte(`{"type":"","name":"a \"b\" {c}","staticMetrics":{"cpuCores":4,"storage":[{"name":"x,}"}],"RAMMemory":8},"labels":{"d\\\\":"]"},"pod":{}}`)
	for want, keys := range map[string][]string{
		`{"name":"a \"b\" {c}"}`: {},
		`{"lastSeen":7,"name":"a \"b\" {c}","labels":{"d\\\\":"]"}}`: {"labels", "lastSeen"},
		`{"name":"a \"b\" {c}","staticMetrics":{"storage":[{"name":"x,}"}],"RAMMemory":8}}`: {
			"staticMetrics.RAMMemory", "staticMetrics.storage", "staticMetrics.moods", "location.city",
		},
		`{"name":"a \"b\" {c}","staticMetrics":{"cpuCores":4,"storage":[{"name":"x,}"}],"RAMMemory":8},"pod":{}}`: {
			"staticMetrics.cpuCores", "staticMetrics", "staticMetrics.RAMMemory", "pod",
		},
	} {
		var out bytes.Buffer
		require.NoError(t, (&printer{w: &out}).node(body, time.Unix(7, 0), pick(keys)))
		require.JSONEq(t, want, out.String(), keys)
	}
	require.Error(t, (&printer{w: &bytes.Buffer{}}).node([]byte(`{"name":`), time.Unix(7, 0), pick([]string{})))
}
