package contracts_test

import (
	"encoding/json"
	"strings"
)

// policyBodies are the bodies that routes of the policy manager accept, without their prefix.
var policyBodies = map[string]bodyKind{
	"POST /registry/api/v1/policies":                                jsonBody,
	"POST /registry/api/v1/policies/{$}":                            jsonBody,
	"PUT /registry/api/v1/policies/{pid}":                           jsonBody,
	"POST /registry/api/v1/policies/{pid}/activate":                 nothing,
	"POST /registry/api/v1/policies/{pid}/deactivate":               nothing,
	"POST /registry/api/v1/policies/{pid}/variables/{name}/{value}": nothing,
	"POST /registry/api/v1/render":                                  jsonBody,
	"POST /registry/api/v1/backtest":                                jsonBody,
	"POST /registry/api/v1/icos/app":                                jsonBody,
	"POST /registry/api/v1/icos/app/{$}":                            jsonBody,
	"POST /registry/api/v1/icos":                                    jsonBody,
	"POST /registry/api/v1/icos/{$}":                                jsonBody,
	"POST /watcher/api/v1/webhooks/alertmanager":                    jsonBody,
}

func init() {
	for route, reads := range policyBodies {
		method, path, _ := strings.Cut(route, " ")
		bodies[route], bodies[method+" /polman"+path] = reads, reads
	}
	for _, answer := range []string{"confirm", "dismiss"} {
		bodies["POST /polman/registry/api/v1/suggestions/{sid}/"+answer] = nothing
	}
}

// policyFitting returns a body that a route of the policy manager accepts.
func policyFitting(r route, about string) (string, bool) {
	var fits any
	switch strings.Replace(r.String(), " /polman", " ", 1) {
	case "POST /registry/api/v1/policies", "POST /registry/api/v1/policies/{$}", "PUT /registry/api/v1/policies/{pid}",
		"POST /registry/api/v1/render":
		fits = usage(about)
	case "POST /registry/api/v1/backtest":
		fits = body{"policy": usage(about), "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:10:00Z", "step": "15s"}
	case "POST /registry/api/v1/icos/app", "POST /registry/api/v1/icos/app/{$}":
		fits = body{"app_instance": about, "event": "stopped", "service": "job-manager"}
	case "POST /registry/api/v1/icos", "POST /registry/api/v1/icos/{$}":
		fits = body{
			"app_instance": about, "app_descriptor": watched, "service": "job-manager",
			"common_action": body{"uri": "/x", "http_method": "POST"},
		}
	case "POST /watcher/api/v1/webhooks/alertmanager":
		fits = body{"version": "4", "alerts": []body{{
			"status": "firing", "startsAt": "2026-01-01T00:00:00Z", "labels": body{}, "annotations": body{"plm_id": about},
		}}}
	default:
		return "", false
	}
	text, err := json.Marshal(fits)
	if err != nil {
		panic(err) // it contains only plain values
	}
	return string(text), true
}
