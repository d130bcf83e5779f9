package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/littoral-project/littoral/shared/events"
)

// scalable is an application with a number of replicas.
const scalable = `name: %s
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 10m, memory: 16Mi}
    manifests:
      - name: web
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: web}
          spec:
            replicas: 1
            selector: {matchLabels: {app: web}}
            template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "nginx:1"}]}}
`

// operatorCases are what an operator does to applications and nodes by hand.
var operatorCases = map[string]maker{
	"jobmanager-revision-get":  get("viewer", "/jobmanager/groups/{running}/revisions/latest"),
	"jobmanager-revision-list": get("viewer", "/jobmanager/groups/{running}/revisions"),
	"jobmanager-rollback": func(_ context.Context, s *scene) (ask, error) {
		return ask{client: "operator", method: http.MethodPut, path: "/jobmanager/groups/rollback/" + s.running.ID + "?to=1"}, nil
	},
	"jobmanager-pin": func(_ context.Context, s *scene) (ask, error) {
		at := s.running.Jobs[0].Targets
		return ask{
			client: "operator", method: http.MethodPut,
			path: "/jobmanager/groups/pin/" + s.running.ID + "?component=web&cluster=" + at.Cluster + "&node=" + at.Node,
		}, nil
	},
	"jobmanager-scale": func(ctx context.Context, s *scene) (ask, error) {
		g, err := s.system.submit(ctx, fmt.Appendf(nil, scalable, "bench"))
		return ask{
			client: "operator", method: http.MethodPut, path: "/jobmanager/groups/scale/" + g.ID + "?component=web&replicas=2",
		}, err
	},

	"matchmaker-node-list":     get("viewer", "/matchmaker/nodes"),
	"matchmaker-node-cordon":   nodeCase("cordon"),
	"matchmaker-node-drain":    nodeCase("drain"),
	"matchmaker-node-uncordon": nodeCase("uncordon"),
	"matchmaker-evacuate": func(ctx context.Context, _ *scene) (ask, error) {
		about := events.Node{Cluster: "edge", Node: "n"}
		return delivery(events.New(ctx, "/functions/matchmaker-node-drain", events.NodeDrained, "edge/n", about))
	},
	"matchmaker-whatif": func(context.Context, *scene) (ask, error) {
		return document("viewer", http.MethodPost, "/matchmaker/whatif", map[string]any{"descriptor": string(text("another"))})
	},
}

// nodeCase asks for a change of the node that the running application is on.
func nodeCase(what string) maker {
	return func(_ context.Context, s *scene) (ask, error) {
		at := s.running.Jobs[0].Targets
		return ask{client: "operator", method: http.MethodPut, path: "/matchmaker/nodes/" + at.Cluster + "/" + at.Node + "/" + what}, nil
	}
}
