package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
)

// codecoCases are of the components that speak CODECO.
var codecoCases = map[string]maker{
	"acm-app-create": func(context.Context, *scene) (ask, error) {
		return ask{client: "operator", method: http.MethodPost, path: "/acm/apps", body: codecoApp(newCodecoApp())}, nil
	},
	"acm-app-get": func(ctx context.Context, s *scene) (ask, error) {
		path, _, err := s.codecoApp(ctx)
		return ask{client: "viewer", method: http.MethodGet, path: path}, err
	},
	"acm-app-update": func(ctx context.Context, s *scene) (ask, error) {
		path, body, err := s.codecoApp(ctx)
		return ask{client: "operator", method: http.MethodPut, path: path, body: body}, err
	},
	"acm-app-delete": func(ctx context.Context, s *scene) (ask, error) {
		path, _, err := s.codecoApp(ctx)
		return ask{client: "operator", method: http.MethodDelete, path: path}, err
	},
	"acm-metrics":       get("viewer", "/acm/metrics"),
	"acm-app-list":      get("viewer", "/acm/apps?limit=10"),
	"swm-channel-list":  get("viewer", "/swm/channels"),
	"swm-topology-list": get("viewer", "/swm/topologies"),
	"swm-topology-put": func(context.Context, *scene) (ask, error) {
		return ask{client: "operator", method: http.MethodPut, path: "/swm/topologies/bench", body: []byte(codecoNetwork)}, nil
	},
	"swm-topology-get": func(ctx context.Context, s *scene) (ask, error) {
		err := s.system.call(ctx, "operator", http.MethodPut, "/swm/topologies/bench", []byte(codecoNetwork), nil)
		return ask{client: "viewer", method: http.MethodGet, path: "/swm/topologies/bench"}, err
	},
	"swm-topology-delete": func(ctx context.Context, s *scene) (ask, error) {
		err := s.system.call(ctx, "operator", http.MethodPut, "/swm/topologies/bench", []byte(codecoNetwork), nil)
		return ask{client: "operator", method: http.MethodDelete, path: "/swm/topologies/bench"}, err
	},
	"acm-status": tick,
	"swm-replan": tick,
	"swm-report": tick,
	"swm-bind":   tick,
	"swm-object-apply": func(ctx context.Context, _ *scene) (ask, error) {
		body, err := event(ctx, events.ObjectAdded, "bench", map[string]any{
			"kind": "ApplicationGroup", "metadata": map[string]any{"namespace": "default", "name": "bench"},
		})
		return ask{method: http.MethodPost, path: "/", body: body}, err
	},
	"swm-object-put": func(context.Context, *scene) (ask, error) {
		return ask{client: "operator", method: http.MethodPut, path: swmGroup, body: []byte(swmGroupBody)}, nil
	},
	"swm-object-get":    swmObject("viewer", http.MethodGet, swmGroup),
	"swm-object-list":   get("viewer", "/swm/objects/applicationgroups"),
	"swm-object-delete": swmObject("operator", http.MethodDelete, swmGroup),
	"swm-plan-get": func(ctx context.Context, s *scene) (ask, error) {
		path, _, err := s.codecoApp(ctx)
		return ask{client: "viewer", method: http.MethodGet, path: strings.Replace(path, "/acm/apps/", "/swm/plans/", 1)}, err
	},
	// Its calls are HTTP/2, which the measure does not speak: so that it is ready is all that is asked.
	"swm-solve": get("viewer", function.ReadyPath),
	"acm-app-apply": func(ctx context.Context, _ *scene) (ask, error) {
		body, err := event(ctx, events.ObjectAdded, "bench", map[string]any{"metadata": map[string]any{"namespace": "default", "name": "bench"}})
		return ask{method: http.MethodPost, path: "/", body: body}, err
	},
}

const (
	swmGroup     = "/swm/objects/applicationgroups/default/bench"
	swmGroupBody = "spec: {minMember: 2}\n"
)

// swmObject is a call about a group that is there.
func swmObject(client, method, path string) maker {
	return func(ctx context.Context, s *scene) (ask, error) {
		err := s.system.call(ctx, "operator", http.MethodPut, swmGroup, []byte(swmGroupBody), nil)
		return ask{client: client, method: method, path: path}, err
	}
}

const codecoNetwork = "networkImplementation: bench\nnodes: [{name: a}, {name: b}]\n" +
	"links: [{source: a, target: b, capabilities: {bandWidthBits: 1G, latencyNanos: \"2e6\"}}]\n"

// codecoApps counts those that were handed in, so that each has a name of its own.
var codecoApps atomic.Int64

func newCodecoApp() string { return fmt.Sprintf("bench-%d", codecoApps.Add(1)) }

func codecoApp(name string) []byte {
	return fmt.Appendf(nil, "apiVersion: codeco.he-codeco.eu/v1alpha1\nkind: CodecoApp\nmetadata: {name: %s}\nspec: {codecoapp-msspec: "+
		"[{serviceName: front, podspec: {containers: [{name: c, image: \"example.org/c:1\"}]}}]}\n", name)
}

// codecoApp hands one in and returns its path and document.
func (s *scene) codecoApp(ctx context.Context) (path string, body []byte, err error) {
	name := newCodecoApp()
	body = codecoApp(name)
	return "/acm/apps/default/" + name, body, s.system.call(ctx, "operator", http.MethodPost, "/acm/apps", body, nil)
}
