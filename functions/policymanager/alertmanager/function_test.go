package alertmanager

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/template"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/decode"
	"github.com/littoral-project/littoral/shared/policy/policies"
)

// TestMessage_isWhatAlertmanagerSends: the output of its webhook notifier is decoded here, field by field.
func TestMessage_isWhatAlertmanagerSends(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	data := template.Data{
		Receiver: "dpm-webhook", Status: "firing", NotificationReason: "first", ExternalURL: "http://am:9093",
		GroupLabels: template.KV{"alertname": "x"}, CommonLabels: template.KV{"a": "b"},
		CommonAnnotations: template.KV{"c": "d"}, RouteLabels: template.KV{"e": "f"},
		Alerts: template.Alerts{{
			Status: "firing", Labels: template.KV{"alertname": "x"}, Annotations: template.KV{"plm_id": "p"},
			StartsAt: start, EndsAt: start.Add(time.Hour), GeneratorURL: "http://prometheus/graph", Fingerprint: "c04fd2082a9b94e9",
		}},
	}
	text, err := json.Marshal(struct { // as its notifier wraps the data
		*template.Data
		Version         string `json:"version"`
		GroupKey        string `json:"groupKey"`
		TruncatedAlerts uint64 `json:"truncatedAlerts"`
	}{&data, "4", "{}:{}", 3})
	require.NoError(t, err)
	var m message
	require.NoError(t, decode.JSON(text, &m))
	require.Equal(t, message{Data: data, Version: "4", GroupKey: "{}:{}", TruncatedAlerts: 3}, m)
	require.NoError(t, m.check(m.alerts()))
	require.Equal(t, []policies.Alert{{
		Status: "firing", Labels: map[string]string{"alertname": "x"}, Annotations: map[string]string{"plm_id": "p"},
		StartsAt: start, EndsAt: start.Add(time.Hour), Fingerprint: "c04fd2082a9b94e9",
	}}, m.alerts())
	again, err := json.Marshal(m)
	require.NoError(t, err)
	require.JSONEq(t, string(text), string(again), "nothing of it is lost")
}
