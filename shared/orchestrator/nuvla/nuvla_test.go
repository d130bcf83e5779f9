package nuvla_test

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/littoral-project/littoral/shared/job"
	client "github.com/littoral-project/littoral/shared/nuvla"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/conformance"
	"github.com/littoral-project/littoral/shared/orchestrator/nuvla"
	double "github.com/littoral-project/littoral/test/nuvla"
)

// edges is a double with two NuvlaEdges, as a world of the suite.
type edges struct {
	*conformance.Clusters

	server  *double.Server
	compose bool // what the suite deploys is translated, and runs on Docker
}

func open(t *testing.T, compose bool) *edges {
	t.Helper()
	server := double.Start(t)
	second := "one-b"
	if compose {
		second = "one-a" // there is one host
	}
	for _, name := range []string{"one", "two"} {
		server.AddEdge(name, double.Docker, double.Kubernetes)
	}
	c, err := client.New(server.URL, double.Key, double.Secret, nil)
	require.NoError(t, err)
	return &edges{
		server: server, compose: compose,
		Clusters: &conformance.Clusters{
			Orchestrator: nuvla.New(c, "littoral/jobs"),
			Targets: []job.Target{
				{Orchestrator: "nuvla", Cluster: "one", Node: "one-a"},
				{Orchestrator: "nuvla", Cluster: "one", Node: second},
				{Orchestrator: "nuvla", Cluster: "two", Node: "two-a"},
			},
			Parted: func(_ *testing.T, cluster string, cut bool) { server.Offline(cluster, cut) },
			Turn: func() {
				server.Work() // a job is fetched
				server.Work() // and carried out
			},
		},
	}
}

func (w *edges) Do(t *testing.T, j *job.Job) (job.State, []job.Condition) {
	t.Helper()
	if w.compose {
		j = translated(t, j)
	}
	return w.Clusters.Do(t, j)
}

// Running reads what the double's edge runs.
func (w *edges) Running(t *testing.T, cluster string, j *job.Job) *conformance.Running {
	t.Helper()
	for _, o := range w.server.Running(cluster) {
		deployment := w.deployment(o.Deployment)
		if !slices.Contains(deployment, orchestrator.LabelJob+"="+orchestrator.Subject(j).String()) {
			continue
		}
		epoch := int64(0)
		for _, tag := range deployment {
			if text, ok := strings.CutPrefix(tag, "littoral.dev/epoch="); ok {
				epoch, _ = strconv.ParseInt(text, 10, 64)
			}
		}
		text, err := yaml.Marshal(o.Doc)
		require.NoError(t, err)
		if w.compose && o.Name == "web" {
			r := service(t, text)
			r.Epoch, r.Node = epoch, cluster+"-a"
			return r
		}
		if o.Name == "Deployment/web" || strings.HasPrefix(o.Name, "Deployment/web-") {
			u := &unstructured.Unstructured{}
			require.NoError(t, decode(text, &u.Object))
			r := conformance.Of(u)
			r.Epoch = epoch
			return r
		}
	}
	return nil
}

func (w *edges) deployment(id string) (tags []string) {
	for _, d := range w.server.Of("deployment") {
		if d["id"] == "deployment/"+id {
			list, _ := d["tags"].([]any)
			for _, tag := range list {
				text, _ := tag.(string)
				tags = append(tags, text)
			}
		}
	}
	return tags
}

func service(t *testing.T, text []byte) *conformance.Running {
	t.Helper()
	var s struct {
		Scale  *int64
		Deploy struct {
			Replicas  *int64
			Resources struct{ Reservations struct{ Cpus string } }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &s))
	r := &conformance.Running{Replicas: 1}
	if s.Deploy.Replicas != nil {
		r.Replicas = *s.Deploy.Replicas
	}
	if cpu, err := resource.ParseQuantity(s.Deploy.Resources.Reservations.Cpus); err == nil {
		r.CPUMilli = cpu.MilliValue()
	}
	return r
}

// translated makes compose files of the objects that the suite deploys.
func translated(t *testing.T, j *job.Job) *job.Job {
	t.Helper()
	next := *j
	next.Instruction.Type = "docker"
	next.Instruction.Contents = nil
	for _, c := range j.Instruction.Contents {
		file := map[string]any{}
		o := &unstructured.Unstructured{}
		switch err := decode([]byte(c.YAML), &o.Object); {
		case err != nil:
			next.Instruction.Contents = append(next.Instruction.Contents, c)
			continue
		case o.GetKind() == "Deployment":
			n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
			containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			first, _ := containers[0].(map[string]any)
			file["services"] = map[string]any{o.GetName(): map[string]any{
				"image": first["image"],
				"deploy": map[string]any{"replicas": n, "resources": map[string]any{
					"reservations": map[string]any{"cpus": "0.010", "memory": "16M"},
				}},
			}}
		default:
			file["configs"] = map[string]any{o.GetName(): map[string]any{"content": "a: $${b}"}}
		}
		text, err := yaml.Marshal(file)
		require.NoError(t, err)
		next.Instruction.Contents = append(next.Instruction.Contents, job.Content{Name: c.Name, YAML: string(text)})
	}
	return &next
}

// decode reads YAML with the numbers of JSON, as Kubernetes does.
func decode(text []byte, into *map[string]any) error {
	objects := map[string]any{}
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&objects); err != nil {
		return err
	}
	*into, _ = plain(objects).(map[string]any)
	return nil
}

func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = plain(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = plain(inner)
		}
	case int:
		return int64(v)
	}
	return v
}

func TestConformanceOfKubernetes(t *testing.T) {
	t.Parallel()
	can := conformance.Can{Silence: true, Refuse: true, Slow: true} // Nuvla counts pods of any form
	conformance.Run(t, can, func(t *testing.T) conformance.World { t.Helper(); return open(t, false) })
}

func TestConformanceOfCompose(t *testing.T) {
	t.Parallel()
	can := conformance.Can{Silence: true, Refuse: true, Slow: true, Rollout: true}
	conformance.Run(t, can, func(t *testing.T) conformance.World { t.Helper(); return open(t, true) })
}
