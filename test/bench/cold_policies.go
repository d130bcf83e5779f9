package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
)

const (
	registryPath = "/polman/registry/api/v1"
	webhookPath  = "/polman/watcher/api/v1/webhooks/alertmanager"
)

// usage is a policy about the component of the running application. Its action only records.
func (s *scene) usage(name string) map[string]any {
	return map[string]any{
		"name": name,
		"subject": map[string]any{
			"type": "app", "appName": "bench", "appInstance": s.running.ID, "appComponent": "web",
		},
		"spec": map[string]any{
			"type": "telemetryQuery", "expr": "container_cpu_usage{ {{subject_label_selector}} }", "violatedIf": "> {{limit}}",
		},
		"variables": map[string]any{"limit": 0.5},
		"action": map[string]any{
			"url": "", "httpMethod": "POST", "extraParams": map[string]any{"remediation": "none"},
		},
	}
}

// unheard returns a name that no policy has yet.
func unheard() string { return "usage-" + uuid.NewString() }

// watch creates a policy with the name and returns its id.
func (s *scene) watch(ctx context.Context, name string) (string, error) {
	return s.create(ctx, s.usage(name))
}

func (s *scene) create(ctx context.Context, policy map[string]any) (string, error) {
	var p struct {
		ID string `json:"id"`
	}
	body, err := json.Marshal(policy)
	if err != nil {
		return "", err
	}
	err = s.system.call(ctx, "operator", http.MethodPost, registryPath+"/policies/", body, &p)
	return p.ID, err
}

// firing is the message that Alertmanager sends when a rule of the policy fires.
func (s *scene) firing(policy string) map[string]any {
	return map[string]any{
		"version": "4", "groupKey": "{}:{}", "status": "firing", "receiver": "bench", "externalURL": "http://am:9093",
		"groupLabels": map[string]any{}, "commonLabels": map[string]any{}, "commonAnnotations": map[string]any{},
		"alerts": []map[string]any{{
			"status": "firing", "startsAt": time.Now().UTC().Format(time.RFC3339Nano), "endsAt": "0001-01-01T00:00:00Z",
			"fingerprint": "c04fd2082a9b94e9",
			"labels":      map[string]any{"alertname": "usage", "icos_app_instance": s.running.ID, "icos_app_component": "web"},
			"annotations": map[string]any{"plm_id": policy, "plm_expr_value": "0.92"},
		}},
	}
}

// alert sends an alert about a new policy to the webhook.
func (s *scene) alert(ctx context.Context) error {
	policy, err := s.watch(ctx, unheard())
	if err != nil {
		return err
	}
	return s.fire(ctx, policy)
}

// fire sends an alert about the policy to the webhook.
func (s *scene) fire(ctx context.Context, policy string) error {
	body, err := json.Marshal(s.firing(policy))
	if err != nil {
		return err
	}
	return s.system.call(ctx, "admin", http.MethodPost, webhookPath, body, nil)
}

// overPolicy makes a request without a body, with a new policy in its path.
func overPolicy(method, path string) maker {
	return func(ctx context.Context, s *scene) (ask, error) {
		id, err := s.watch(ctx, unheard())
		return ask{client: "operator", method: method, path: fmt.Sprintf(path, id)}, err
	}
}

// post makes an operator's request whose body is made from the scene.
func post(path string, body func(*scene) any) maker {
	return func(_ context.Context, s *scene) (ask, error) {
		return document("operator", http.MethodPost, path, body(s))
	}
}

func usage(s *scene) any { return s.usage(unheard()) }

// overSuggestion makes a request about a new suggestion.
func overSuggestion(answer string) maker {
	return func(ctx context.Context, s *scene) (ask, error) {
		policy := s.usage(unheard())
		policy["properties"] = map[string]any{"confirm": true}
		policy["action"] = map[string]any{"url": "", "httpMethod": "POST", "extraParams": map[string]any{"remediation": "scale-up"}}
		id, err := s.create(ctx, policy)
		if err != nil {
			return ask{}, err
		}
		if err := s.fire(ctx, id); err != nil {
			return ask{}, err
		}
		var waiting []struct {
			ID       string `json:"id"`
			PolicyID string `json:"policyId"`
		}
		if err := s.system.call(ctx, "operator", http.MethodGet, registryPath+"/suggestions", nil, &waiting); err != nil {
			return ask{}, err
		}
		for _, w := range waiting {
			if w.PolicyID == id {
				return ask{client: "operator", method: http.MethodPost, path: registryPath + "/suggestions/" + w.ID + "/" + answer}, nil
			}
		}
		return ask{}, fmt.Errorf("policy %s suggests nothing", id)
	}
}

var policyCases = map[string]maker{
	"policymanager-suggestion-list":    get("viewer", registryPath+"/suggestions"),
	"policymanager-suggestion-confirm": overSuggestion("confirm"),
	"policymanager-suggestion-dismiss": overSuggestion("dismiss"),

	"policymanager-home":          get("", "/polman/healthz"),
	"policymanager-metrics":       get("viewer", "/polman/metrics"),
	"policymanager-policy-get":    get("viewer", registryPath+"/policies/{policy}"),
	"policymanager-policy-list":   get("viewer", registryPath+"/policies?limit=10"),
	"policymanager-stats":         get("", registryPath+"/stats"),
	"policymanager-status":        get("viewer", "/polman/status"),
	"policymanager-template-list": get("viewer", registryPath+"/templates"),
	"policymanager-variable-list": get("viewer", registryPath+"/policies/{policy}/variables"),

	"policymanager-policy-create":     post(registryPath+"/policies", usage),
	"policymanager-render":            post(registryPath+"/render", usage),
	"policymanager-policy-delete":     overPolicy(http.MethodDelete, registryPath+"/policies/%s"),
	"policymanager-policy-deactivate": overPolicy(http.MethodPost, registryPath+"/policies/%s/deactivate"),
	"policymanager-policy-activate":   overPolicy(http.MethodPost, registryPath+"/policies/%s/activate"),
	"policymanager-variable-set":      overPolicy(http.MethodPost, registryPath+"/policies/%s/variables/limit/0.75"),
	"policymanager-policy-update": func(ctx context.Context, s *scene) (ask, error) {
		name := unheard()
		id, err := s.watch(ctx, name)
		if err != nil {
			return ask{}, err
		}
		next := s.usage(name)
		next["variables"] = map[string]any{"limit": 0.75}
		return document("operator", http.MethodPut, registryPath+"/policies/"+id, next)
	},
	"policymanager-variable-delete": func(ctx context.Context, s *scene) (ask, error) {
		id, err := s.watch(ctx, unheard())
		if err != nil {
			return ask{}, err
		}
		path := registryPath + "/policies/" + id + "/variables/spare"
		err = s.system.call(ctx, "operator", http.MethodPost, path+"/1", nil, nil)
		return ask{client: "operator", method: http.MethodDelete, path: path}, err
	},
	"policymanager-backtest": post(registryPath+"/backtest", func(s *scene) any {
		now := time.Now().UTC()
		return map[string]any{"policy": usage(s), "from": now.Add(-10 * time.Minute), "to": now, "step": "15s"}
	}),
	"policymanager-alertmanager": func(ctx context.Context, s *scene) (ask, error) {
		id, err := s.watch(ctx, unheard())
		if err != nil {
			return ask{}, err
		}
		return document("admin", http.MethodPost, webhookPath, s.firing(id))
	},
	// The report of another job manager about its own application.
	"policymanager-app-event": post(registryPath+"/icos/app", func(*scene) any {
		return map[string]any{
			"app_instance": uuid.NewString(), "event": "created", "service": "job-manager", "app_descriptor": watched,
		}
	}),
	"policymanager-app-policies": post(registryPath+"/icos", func(*scene) any {
		return map[string]any{
			"app_instance": uuid.NewString(), "service": "job-manager", "app_descriptor": watched,
			"common_action": map[string]any{"uri": "/x", "http_method": "POST"},
		}
	}),

	"policymanager-reconcile": tick,
	"policymanager-follow": func(ctx context.Context, s *scene) (ask, error) {
		g, err := s.system.submit(ctx, []byte(watched))
		if err != nil {
			return ask{}, err
		}
		return delivery(s.held(ctx, events.ApplicationStopped, func() error {
			return s.system.call(ctx, "operator", http.MethodPut, "/jobmanager/groups/stop/"+g.ID, nil, nil)
		}))
	},
	"policymanager-rule": func(ctx context.Context, s *scene) (ask, error) {
		return delivery(s.held(ctx, events.PolicyChanged, func() error { _, err := s.watch(ctx, unheard()); return err }))
	},
	"policymanager-judge": func(ctx context.Context, s *scene) (ask, error) {
		return delivery(s.held(ctx, events.AlertReceived, func() error { return s.alert(ctx) }))
	},
	"policymanager-remediate": func(ctx context.Context, s *scene) (ask, error) {
		alert, err := s.held(ctx, events.AlertReceived, func() error { return s.alert(ctx) })
		if err != nil {
			return ask{}, err
		}
		return delivery(s.held(ctx, events.RemediationRequested, func() error {
			return s.system.broker.DeliverTo(ctx, "policymanager-judge", alert)
		}))
	},
	// The policy is not watched any more when the turn of its call comes, so nobody is called.
	"policymanager-webhook": func(ctx context.Context, s *scene) (ask, error) {
		policy := s.usage(unheard())
		policy["action"] = map[string]any{"url": "http://192.0.2.1/", "httpMethod": "POST"}
		id, err := s.create(ctx, policy)
		if err != nil {
			return ask{}, err
		}
		alert, err := s.held(ctx, events.AlertReceived, func() error { return s.fire(ctx, id) })
		if err != nil {
			return ask{}, err
		}
		return delivery(s.held(ctx, events.WebhookRequested, func() error {
			if err := s.system.broker.DeliverTo(ctx, "policymanager-judge", alert); err != nil {
				return err
			}
			return s.system.call(ctx, "operator", http.MethodPost, registryPath+"/policies/"+id+"/deactivate", nil, nil)
		}))
	},
}

// watched is an application with a policy.
const watched = `name: watched
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 10m, memory: 16Mi}
    manifests: [{name: web, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web},}}]
policies:
  - {name: load, type: custom, fromTemplate: app-host-cpu-usage-perc, remediation: none, variables: {threshold: 0.8}}
`

var ruleCases = map[string]maker{
	"telemetry-home":        get("", "/telemetry/healthz"),
	"telemetry-rule-list":   get("viewer", "/rules"),
	"telemetry-logs":        get("operator", "/telemetry/logs?app={running}"),
	"telemetry-series":      get("operator", "/telemetry/series?query=up"),
	"telemetry-rule-create": post("/rules", func(*scene) any { return rule() }),
	"telemetry-rule-delete": func(ctx context.Context, s *scene) (ask, error) {
		body, err := json.Marshal(rule())
		if err != nil {
			return ask{}, err
		}
		// The functions of this process keep rules where the measured process looks for them.
		err = s.system.call(ctx, "operator", http.MethodPost, "/rules", body, nil)
		return ask{client: "operator", method: http.MethodDelete, path: "/rules/" + rules.ID("bench")}, err
	},
}

// rule is a group like those of the policy manager.
func rule() any {
	return map[string]any{"data": map[string]any{"groups": []map[string]any{{
		"name": "bench", "rules": []map[string]any{{
			"alert": "bench:rule-0", "expr": `avg(rate(node_cpu_seconds_total{mode="idle"}[2m])) < 0.2`, "for": "0",
			"labels": map[string]any{}, "annotations": map[string]any{"plm_id": "p1"},
		}},
	}}}}
}

// anyRule is a rules API that accepts everything and stores nothing.
func anyRule(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.Method {
	case http.MethodPost:
		_, _ = w.Write([]byte(`{"file":"bench"}`))
	case http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	default:
		_, _ = w.Write([]byte(`[]`))
	}
}

var outboxCases = map[string]maker{
	"outbox-sweep":     tick,
	"outbox-dead-list": get("viewer", "/events/dead?limit=10"),
	"outbox-dead-letter": func(ctx context.Context, _ *scene) (ask, error) {
		return delivery(dead(ctx))
	},
	"outbox-replay": func(ctx context.Context, s *scene) (ask, error) {
		e, err := dead(ctx)
		if err != nil {
			return ask{}, err
		}
		err = s.system.broker.DeliverTo(ctx, "outbox-dead-letter", e)
		return ask{client: "operator", method: http.MethodPost, path: "/events/" + e.ID() + "/replay"}, err
	},
}

// dead is an event that the Broker gave up, as delivered to the sink.
func dead(ctx context.Context) (cloudevents.Event, error) {
	id := uuid.New()
	e, err := events.New(ctx, "/functions/bench", events.JobFinished, id.String(), events.Job{ID: id})
	e.SetExtension("knativeerrordest", "http://policymanager-follow.littoral.svc.cluster.local")
	e.SetExtension("knativeerrorcode", 500)
	e.SetExtension("knativeerrordata", base64.StdEncoding.EncodeToString([]byte("it failed")))
	return e, err
}
