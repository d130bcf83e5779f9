package main

import (
	"context"
	"net/http"
)

// pdlcCases are the functions of profiles, scores, pipelines and recommendations.
var pdlcCases = map[string]maker{
	"pdlc-profile-list":   get("viewer", "/pdlc/profiles"),
	"pdlc-profile-put":    sent(http.MethodPut, "/pdlc/profiles/bench", benchProfile),
	"pdlc-profile-delete": after("/pdlc/profiles/bench", benchProfile, http.MethodDelete, "/pdlc/profiles/bench"),
	"pdlc-score-list":     get("viewer", "/pdlc/scores"),
	"pdlc-score":          tick,

	"pdlc-generate":            get("operator", "/pdlc/generated/topology.json?nodes=20"),
	"pdlc-agent-list":          get("viewer", "/pdlc/agents"),
	"pdlc-agent-train":         sent(http.MethodPost, "/pdlc/agents", `{"episodes": 16}`),
	"pdlc-recommend":           get("", "/healthz"), // it needs an application, and is as large as agent-list
	"pdlc-recommendation-list": get("viewer", "/pdlc/recommendations/{running}"),
	"pdlc-pipeline-list":       get("viewer", "/pdlc/pipelines"),
	"pdlc-pipeline-put":        sent(http.MethodPut, "/pdlc/pipelines/bench", benchPipeline),
	"pdlc-pipeline-delete":     after("/pdlc/pipelines/bench", benchPipeline, http.MethodDelete, "/pdlc/pipelines/bench"),
	"pdlc-pipeline-rollback":   get("", "/healthz"), // it needs two models
	"pdlc-retrain":             tick,
	"pdlc-judge":               tick,
	"pdlc-federation-put":      sent(http.MethodPut, "/pdlc/federations/bench", "{}"),
	"pdlc-federation-get":      after("/pdlc/federations/bench", "{}", http.MethodGet, "/pdlc/federations/bench"),
	"pdlc-federation-delete":   after("/pdlc/federations/bench", "{}", http.MethodDelete, "/pdlc/federations/bench"),
	"pdlc-federation-round":    get("", "/healthz"), // for controllers
	"pdlc-federation-update":   get("", "/healthz"),
	"pdlc-end-rounds":          tick,
	"pdlc-participate":         tick,
}

const benchPipeline = `{"telemetry_metric": "up"}`

const benchProfile = `{"formula": "1 - share(energy)"}`

// after asks once something else was put.
func after(at, body, method, path string) maker {
	return func(ctx context.Context, s *scene) (ask, error) {
		err := s.system.call(ctx, "operator", http.MethodPut, at, []byte(body), nil)
		return ask{client: "operator", method: method, path: path}, err
	}
}
