package fleet

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWorkloads(t *testing.T) {
	t.Parallel()
	one := func(name string, replicas int, containers ...Container) []Workload {
		return []Workload{{Name: name, Replicas: replicas, Containers: containers}}
	}
	for name, row := range map[string]struct {
		yaml  string
		needs Requirements
		want  []Workload
	}{
		"a deployment with its requests": {webYAML, Requirements{}, one("web", 2, Container{"nginx", 500, 256 << 20})},
		"a pod": {
			"kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, resources: {requests: {cpu: 2}}}]}",
			Requirements{Memory: "64Mi"},
			one("p", 1, Container{"c", 2000, 64 << 20}),
		},
		"requirements stand in where no manifest asks": {
			"kind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{name: a}, {name: b}]}}}",
			Requirements{CPU: "0.5", Memory: "1Gi"},
			one("d", 1, Container{"a", 500, 1 << 30}, Container{Name: "b"}),
		},
		"a compose file has a workload for each service": {
			"services:\n  web: {image: a}\n  db: {image: b}",
			Requirements{},
			[]Workload{
				{"db", 1, []Container{{Name: "db"}}},
				{"web", 1, []Container{{Name: "web"}}},
			},
		},
		"objects without pods run nothing": {"kind: ConfigMap\nmetadata: {name: c}", Requirements{}, nil},
		"what is no object is taken for one container": {
			"image: nginx", Requirements{CPU: "100m"}, one("thing", 1, Container{"thing", 100, 0}),
		},
		"what cannot be read too": {"{{ not yaml", Requirements{}, one("thing", 1, Container{Name: "thing"})},
		"a document that cannot be read is passed over": {
			"just text\n---\nkind: Pod\nmetadata: {name: p}", Requirements{}, one("p", 1),
		},
		"nobody gets a million replicas": {
			"kind: Deployment\nmetadata: {name: d}\nspec: {replicas: 1000000}", Requirements{}, one("d", maxReplicas),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.want, workloads("thing", []Content{{YAML: row.yaml}}, row.needs))
		})
	}
}

func TestWorkloadsAreBounded(t *testing.T) {
	t.Parallel()
	many := workloads("c", []Content{{YAML: strings.Repeat("kind: Pod\n---\n", 1000)}}, Requirements{})
	require.Len(t, many, maxWorkloads)
}

func FuzzWorkloads(f *testing.F) {
	f.Add(webYAML, "1")
	f.Add("services: {a: 1}\n---\n- x", "200MB")
	f.Add(strings.Repeat("[", 1000), "-1")
	f.Fuzz(func(t *testing.T, manifest, cpu string) {
		for _, w := range workloads("c", []Content{{YAML: manifest}}, Requirements{CPU: loose(cpu)}) {
			require.LessOrEqual(t, w.Replicas, maxReplicas)
			require.GreaterOrEqual(t, w.Replicas, 0)
			for _, c := range w.Containers {
				require.GreaterOrEqual(t, c.CPUMilli, int64(0))
			}
		}
	})
}
