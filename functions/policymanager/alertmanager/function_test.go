package alertmanager

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/template"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/policies"
)

// TestMessage_isWhatAlertmanagerSends: its own type is the contract, field by field.
func TestMessage_isWhatAlertmanagerSends(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	text, err := json.Marshal(struct {
		*template.Data
		Version string `json:"version"`
	}{&template.Data{
		Receiver: "dpm-webhook", Status: "firing", GroupLabels: template.KV{}, CommonLabels: template.KV{},
		Alerts: template.Alerts{{
			Status: "firing", Labels: template.KV{"alertname": "x"}, Annotations: template.KV{"plm_id": "p"},
			StartsAt: start, Fingerprint: "c04fd2082a9b94e9",
		}},
	}, "4"})
	require.NoError(t, err)
	var m message
	require.NoError(t, function.Unmarshal(text, &m))
	require.NoError(t, m.check())
	require.Equal(t, message{Version: "4", Alerts: []policies.Alert{{
		Status: "firing", Labels: map[string]string{"alertname": "x"}, Annotations: map[string]string{"plm_id": "p"},
		StartsAt: start, Fingerprint: "c04fd2082a9b94e9",
	}}}, m)
}
