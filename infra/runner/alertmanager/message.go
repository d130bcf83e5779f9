package alertmanager

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/alertmanager/template"
	"github.com/prometheus/common/model"
)

// message is the body of a webhook, version 4
// (https://prometheus.io/docs/alerting/latest/configuration/#webhook_config).
type message struct {
	*template.Data

	Version         string `json:"version"`
	GroupKey        string `json:"groupKey"`
	TruncatedAlerts uint64 `json:"truncatedAlerts"`
}

func (n *Notifier) message(g *group, alerts []*model.Alert, now time.Time) *message {
	data := &template.Data{
		Receiver: Receiver, Status: string(model.AlertResolved), ExternalURL: n.options.URL, Alerts: template.Alerts{},
		GroupLabels: plain(g.labels), CommonLabels: common(alerts, func(a *model.Alert) model.LabelSet { return a.Labels }),
		CommonAnnotations: common(alerts, func(a *model.Alert) model.LabelSet { return a.Annotations }),
		RouteLabels:       template.KV{},
	}
	for _, a := range alerts {
		status := model.AlertResolved
		if !a.ResolvedAt(now) {
			status, data.Status = model.AlertFiring, string(model.AlertFiring)
		}
		data.Alerts = append(data.Alerts, template.Alert{
			Status: string(status), Labels: plain(a.Labels), Annotations: plain(a.Annotations), StartsAt: a.StartsAt,
			EndsAt: a.EndsAt, GeneratorURL: a.GeneratorURL, Fingerprint: a.Fingerprint().String(),
		})
	}
	return &message{Data: data, Version: "4", GroupKey: "{}:" + g.labels.String()}
}

func plain(labels model.LabelSet) template.KV {
	kv := make(template.KV, len(labels))
	for name, value := range labels {
		kv[string(name)] = string(value)
	}
	return kv
}

// common returns what all alerts say alike.
func common(alerts []*model.Alert, of func(*model.Alert) model.LabelSet) template.KV {
	if len(alerts) == 0 {
		return template.KV{}
	}
	shared := of(alerts[0]).Clone()
	for _, a := range alerts[1:] {
		for name, value := range shared {
			if of(a)[name] != value {
				delete(shared, name)
			}
		}
	}
	return plain(shared)
}

// post sends the message once; the group tries again after its interval.
func (n *Notifier) post(g *group, alerts []*model.Alert, now time.Time) error {
	body, err := json.Marshal(n.message(g, alerts, now))
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(n.ctx, http.MethodPost, n.options.Webhook, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Alertmanager (littoral-up)")
	resp, err := n.options.Client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(answer))
	}
	return context.Cause(n.ctx)
}
