package difference_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/difference"
)

const shop = `name: shop
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 500m, memory: 64Mi}
    manifests:
      - name: web
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: web}
          spec:
            replicas: 1
            selector: {matchLabels: {app: web}}
            template:
              metadata: {labels: {app: web}}
              spec:
                containers:
                  - {name: web, image: "nginx:1.0"}
      - name: web
        manifest: {apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}
  - name: db
    type: kubernetes
    manifests:
      - {name: db, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: db}, data: {a: "1"}}}
policies:
  - {name: fast, type: scheduler, performance: 1}
`

func fields(t *testing.T, replacements ...string) []difference.Field {
	t.Helper()
	before, err := descriptor.Parse([]byte(shop), nil)
	require.NoError(t, err)
	changed := strings.NewReplacer(replacements...).Replace(shop)
	require.NotEqual(t, shop, changed)
	now, err := descriptor.Parse([]byte(changed), nil)
	require.NoError(t, err)
	return difference.Fields(before, now)
}

func TestFields(t *testing.T) {
	t.Parallel()
	const image = "spec.template.spec.containers[web].image"
	for name, row := range map[string]struct {
		change []string
		want   []difference.Field
	}{
		"of a pod template restart it": {
			[]string{"nginx:1.0", "nginx:2.0"},
			[]difference.Field{{
				Component: "web", Object: "Deployment/web", Path: image, Action: "changed", From: "nginx:1.0",
				To: "nginx:2.0", Restarts: true,
			}},
		},
		"beside the template do not": {
			[]string{"replicas: 1", "replicas: 3"},
			[]difference.Field{{
				Component: "web", Object: "Deployment/web", Path: "spec.replicas", Action: "changed", From: 1, To: 3,
			}},
		},
		"of requirements are written as people write them": {
			[]string{"cpu: 500m, memory: 64Mi", "cpu: 2"},
			[]difference.Field{
				{Component: "web", Path: "requirements.cpu", Action: "changed", From: "500m", To: "2"},
				{Component: "web", Path: "requirements.memory", Action: "removed", From: "64Mi"},
			},
		},
		"tell a policy that comes from one that goes": {
			[]string{"{name: fast, type: scheduler, performance: 1}", "{name: safe, type: security, level: high}"},
			[]difference.Field{
				{Path: "policies[fast]", Action: "removed"}, {Path: "policies[safe]", Action: "added"},
			},
		},
		"tell a component that goes": {
			[]string{"  - name: db", "  - name: store"},
			[]difference.Field{{Component: "db", Action: "removed"}, {Component: "store", Action: "added"}},
		},
		"tell an object that comes": {
			[]string{"      - name: web\n        manifest: {apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}\n", ""},
			[]difference.Field{{Component: "web", Object: "Service/web", Action: "removed"}},
		},
		"of what only looks different are none": {[]string{"{cpu: 500m, memory: 64Mi}", "{cpu: 0.5, memory: 65536Ki}"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.want, fields(t, row.change...))
		})
	}
}
