package main

import (
	"context"
	"net/http"
)

// shellCases are of the backend of the ICOS shell, and of the lighthouse.
var shellCases = map[string]maker{
	"lighthouse-controller-add": func(context.Context, *scene) (ask, error) {
		return document("admin", http.MethodPost, "/api/v3/controller/", map[string]any{"name": "bench", "address": "bench.example"})
	},
	"lighthouse-controller-list": get("", "/api/v3/controller/"),
	"lighthouse-sweep":           tick, "controller-register": tick,
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
