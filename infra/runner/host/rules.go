package host

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/littoral-project/littoral/infra/examples"
	"github.com/littoral-project/littoral/infra/runner/alertmanager"
	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/shared/function"
)

const (
	reloadPath  = "/-/reload"
	otlpPath    = "/api/v1/otlp/v1/metrics"
	webhookPath = "/polman/watcher/api/v1/webhooks/alertmanager"

	policyManager = "policymanager" // client that writes rules, calls the job manager and registers at the lighthouse
)

// rulesDir is where the telemetry functions keep rule files, and where a person may add others.
func (h *Host) rulesDir() string { return filepath.Join(h.home.dir, "rules") }

// prometheusInside is the Prometheus for functions, which may also make it reload its rules and send it metrics.
func (h *Host) prometheusInside() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", h.prometheus.Handler())
	mux.Handle("POST "+reloadPath, h.prometheus.ReloadHandler())
	mux.Handle("POST "+otlpPath, h.prometheus.OTLPHandler())
	return mux
}

// startRules starts the evaluation of the rules. Their alerts go to the policy manager's webhook in the same way as
// from a real Alertmanager: over the network, with their own token.
func (h *Host) startRules() error {
	if err := os.MkdirAll(h.rulesDir(), 0o755); err != nil { // rules are no secret
		return fmt.Errorf("rules: %w", err)
	}
	own := filepath.Join(h.home.dir, "telemetry-rules.yaml")
	text, err := examples.Telemetry()
	if err != nil {
		return fmt.Errorf("rules: %w", err)
	}
	if err := os.WriteFile(own, text, 0o644); err != nil { // nor are these
		return fmt.Errorf("rules: %w", err)
	}
	client := h.issuer.Credentials("alertmanager").Client(context.Background())
	client.Timeout = function.Outbound
	alerts, err := alertmanager.New(alertmanager.Options{
		Webhook: h.url + webhookPath, Client: client, URL: h.url, File: filepath.Join(h.home.dir, "alerts.json"), Log: h.log,
	})
	if err != nil {
		return err
	}
	h.onStop(func(context.Context) error { return alerts.Close() })
	err = h.prometheus.Evaluate(prometheus.RuleOptions{
		Dir: h.rulesDir(), Own: own, URL: h.url + prometheusPath, Send: alerts.Send,
	})
	if err != nil { // a broken file that a person added must not prevent the start
		h.log.Error("rules are not evaluated until their files are mended", "directory", h.rulesDir(), "error", err.Error())
	}
	return nil
}
