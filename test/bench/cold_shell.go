package main

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/handover"
)

// shellCases are of the backend of the ICOS shell, and of the lighthouse.
var shellCases = map[string]maker{
	"lighthouse-controller-add": func(context.Context, *scene) (ask, error) {
		return document("admin", http.MethodPost, "/api/v3/controller/", map[string]any{"name": "bench", "address": "bench.example"})
	},
	"lighthouse-controller-list": get("", "/api/v3/controller/"),
	"controller-accept": refusal(http.StatusForbidden, func(context.Context, *scene) (ask, error) { // by a controller that is no peer of the bench
		return document("admin", http.MethodPut, "/controller/applications/"+uuid.NewString(), map[string]any{
			"specversion": "1.0", "id": "1", "source": "/controllers/bench", "type": handover.Transferred, "data": map[string]any{
				"epoch":       1,
				"application": map[string]any{"name": "bench", "dialect": "icos", "descriptor": "name: bench", "version": 1},
			},
		})
	}),
	"controller-lease": refusal(http.StatusForbidden, func(context.Context, *scene) (ask, error) {
		return document("admin", http.MethodPost, "/controller/leases", map[string]any{
			"specversion": "1.0", "id": "1", "source": "/controllers/bench", "type": handover.Claimed, "data": map[string]any{"claims": []any{}},
		})
	}),
	"controller-history-read": refusal(http.StatusNotFound, get("viewer", "/controller/applications/{running}/history")), // it was never handed over
	"controller-logs-read":    refusal(http.StatusNotFound, get("admin", "/controller/applications/{running}/logs")),
	"controller-history-show": refusal(http.StatusForbidden, get("admin", "/controller/handovers/{running}/history?controller=bench")),
	"controller-logs-show":    refusal(http.StatusForbidden, get("admin", "/controller/handovers/{running}/logs?controller=bench")),
	"controller-offer":        send("admin", http.MethodPost, "/controller/offers", "bench"),
	"controller-handover-create": refusal(http.StatusNotFound, func(_ context.Context, s *scene) (ask, error) { // it was never handed over
		return document("operator", http.MethodPost, "/controller/handovers", map[string]any{"application": s.running.ID, "home": true})
	}),
	"controller-give": func(ctx context.Context, s *scene) (ask, error) {
		id, err := uuid.Parse(s.running.ID)
		if err != nil {
			return ask{}, err
		}
		body, err := event(ctx, events.HandoverRequested, s.running.ID, events.Handover{ID: id, Epoch: 1})
		return ask{method: http.MethodPost, path: "/", body: body}, err
	},
	"controller-overflow": func(ctx context.Context, s *scene) (ask, error) {
		id, err := uuid.Parse(s.running.ID)
		if err != nil {
			return ask{}, err
		}
		body, err := event(ctx, events.ApplicationUnplaced, s.running.ID, events.Application{ID: id, Name: "bench", Version: 1})
		return ask{method: http.MethodPost, path: "/", body: body}, err
	},
	"controller-renew":         tick,
	"controller-take-over":     tick,
	"controller-handover-list": get("viewer", "/controller/handovers"),
	"lighthouse-sweep":         tick, "controller-register": tick,
	"shell-deployment-create": send("operator", http.MethodPost, "/api/v3/deployment/", "bench"),
	"shell-deployment-delete": func(ctx context.Context, s *scene) (ask, error) {
		g, err := s.stopped(ctx)
		return ask{client: "operator", method: http.MethodDelete, path: "/api/v3/deployment/" + g.ID}, err
	},
	"shell-deployment-get":  get("viewer", "/api/v3/deployment/{running}"),
	"shell-deployment-list": get("viewer", "/api/v3/deployment/?limit=10"),
	"shell-deployment-start": func(ctx context.Context, s *scene) (ask, error) {
		g, err := s.stopped(ctx)
		return ask{client: "operator", method: http.MethodPut, path: "/api/v3/deployment/" + g.ID + "/start"}, err
	},
	"shell-deployment-stop": func(ctx context.Context, s *scene) (ask, error) {
		g, err := s.submit(ctx)
		return ask{client: "operator", method: http.MethodPut, path: "/api/v3/deployment/" + g.ID + "/stop"}, err
	},
	"shell-deployment-update": send("operator", http.MethodPut, "/api/v3/deployment/{running}", "bench"),
	"shell-healthcheck":       get("", "/api/v3/healthcheck"),
	"shell-resource-get":      get("viewer", "/api/v3/resource/{job}"),
	"shell-resource-list":     get("viewer", "/api/v3/resource/"),
	"shell-user-logout":       get("", "/api/v3/user/logout"),

	// These answer 501, here and on most sites, so what is asked is whether they are there.
	"shell-metrics-predict": get("", "/healthz"),
	"shell-metrics-train":   get("", "/healthz"),
	"shell-user-login":      get("", "/healthz"),
}
