// Package dress adds to what a job deploys what this installation gives every application: the Secret with which it reads its
// own keys of the bus, and in pods that ask for it the sidecar that gives their COMPSs agent its workers.
package dress

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/clusterlink"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/manifest"
)

// Settings is read from the environment by envconfig.
type Settings struct {
	bus.Tokens

	// Bus is where applications reach the bus. Without it, or without a key for tokens, they get no Secret.
	Bus string `envconfig:"BUS_URL"`
	// Image is that of infra/agents/sidecar. Without it, components that ask for the sidecar are refused.
	Image string `envconfig:"DPE_IMAGE"`
	// Links says how components reach each other across clusters. ClusterLink knows a client by a label of its pods.
	Links clusterlink.Settings
}

// Secret is the name of an application's Secret in its namespace. Its keys are environment variables.
const Secret = "littoral-bus"

// sidecar is the name of the container, and of its volume.
const sidecar = "littoral-dpe"

// Orchestrator returns one that gives o dressed jobs; nil for nil.
func Orchestrator(o orchestrator.Orchestrator, s Settings) orchestrator.Orchestrator {
	if o == nil {
		return nil
	}
	return &dressed{o, s}
}

type dressed struct {
	orchestrator.Orchestrator

	settings Settings
}

// Apply makes the copy of the dressed job.
func (d *dressed) Apply(ctx context.Context, j *job.Job) error {
	j, err := d.settings.Job(j)
	if err != nil {
		return err
	}
	return d.Orchestrator.Apply(ctx, j)
}

// Observe compares the copy with the dressed job. One that cannot be dressed was not applied.
func (d *dressed) Observe(ctx context.Context, j *job.Job) (orchestrator.Status, error) {
	dressed, err := d.settings.Job(j)
	if err != nil {
		return d.Orchestrator.Observe(ctx, j)
	}
	s, err := d.Orchestrator.Observe(ctx, dressed)
	switch plain := orchestrator.Content(j); s.Content { // who asks compares with the job as it is stored
	case orchestrator.Content(dressed):
		s.Content = plain
	case plain:
		s.Content = "" // what is there lacks what is added by now
	}
	return s, err
}

// Copies returns one whose Observe dresses as well.
func (d *dressed) Copies(ctx context.Context) ([]orchestrator.Copy, orchestrator.Orchestrator, error) {
	copies, seen, err := d.Orchestrator.Copies(ctx)
	if seen == nil {
		return copies, nil, err
	}
	return copies, &dressed{seen, d.settings}, err
}

// Job returns the job with what is added. The error is a Refusal.
func (s Settings) Job(j *job.Job) (*job.Job, error) {
	if j.Instruction.Type == appmodel.TypeDocker || len(j.Instruction.Contents) == 0 {
		return j, nil
	}
	contents := make([]job.Content, 0, len(j.Instruction.Contents)+1)
	for _, c := range j.Instruction.Contents {
		if s.labels(j) || strings.Contains(c.YAML, label.MarkDPE) { // few have it, and all others stay to the byte
			text, err := s.addTo(c, j)
			if err != nil {
				return nil, err
			}
			c.YAML = text
		}
		contents = append(contents, c)
	}
	if s.grants() {
		contents = append(contents, s.secret(j))
	}
	out := *j
	out.Instruction.Contents = contents
	return &out, nil
}

func (s Settings) grants() bool { return s.Key != "" && s.Bus != "" }

// secret is equal for all components of an application.
func (s Settings) secret(j *job.Job) job.Content {
	instance := j.ApplicationID.String()
	text, _ := json.Marshal(map[string]any{ // texts always encode
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": Secret}, "type": "Opaque",
		"stringData": map[string]any{"BUS_URL": s.Bus, "BUS_TOKEN": s.For(instance), "ICOS_APP_INSTANCE": instance},
	})
	return job.Content{Name: Secret, YAML: string(text)}
}

// labels reports whether pods of the job need the label by which links know them.
func (s Settings) labels(j *job.Job) bool {
	return s.Links.Kind == clusterlink.ClusterLink && j.Instruction.Calls
}

// addTo adds to the objects with pods what they ask for.
func (s Settings) addTo(c job.Content, j *job.Job) (string, error) {
	component := j.Component
	objects, err := manifest.Read([]job.Content{c})
	if err != nil {
		return "", err
	}
	var texts []string
	for _, o := range objects {
		wish, asks := o.GetAnnotations()[label.MarkDPE]
		path, bears := manifest.PodTemplate(o)
		if bears && s.labels(j) {
			field := append(path[:len(path):len(path)], "metadata", "labels", clusterlink.LabelComponent)
			if err := unstructured.SetNestedField(o.Object, clusterlink.Label(component), field...); err != nil {
				return "", orchestrator.Refuse(orchestrator.ReasonBadManifest, "%s %s: %v", o.GetKind(), o.GetName(), err)
			}
		}
		if bears && asks {
			if !s.grants() || s.Image == "" {
				return "", orchestrator.Refuse(orchestrator.ReasonNotSupported,
					"component %s asks for the sidecar of COMPSs, and this installation has none: BUS_URL, BUS_TOKEN_KEY and DPE_IMAGE are not all set", component)
			}
			if err := s.addSidecar(o, append(path, "spec"), wish, component); err != nil {
				return "", orchestrator.Refuse(orchestrator.ReasonBadManifest, "%s %s: %v", o.GetKind(), o.GetName(), err)
			}
		}
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return "", err
		}
		texts = append(texts, string(text))
	}
	return strings.Join(texts, "---\n"), nil
}

// addSidecar adds the container at the end: the first one stays that which a terminal or a log opens.
func (s Settings) addSidecar(o *unstructured.Unstructured, spec []string, wish, component string) error {
	var dpe appmodel.DPE
	if wish != "true" {
		if err := json.Unmarshal([]byte(wish), &dpe); err != nil {
			return err
		}
	}
	for field, entry := range map[string]any{"containers": s.container(dpe, component), "volumes": volume()} {
		path := append(spec[:len(spec):len(spec)], field)
		list, _, err := unstructured.NestedSlice(o.Object, path...)
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedSlice(o.Object, append(list, entry), path...); err != nil {
			return err
		}
	}
	return nil
}

func volume() map[string]any { return map[string]any{"name": sidecar, "emptyDir": map[string]any{}} }

func (s Settings) container(dpe appmodel.DPE, component string) map[string]any {
	env := []any{
		map[string]any{"name": "ICOS_APP_COMPONENT", "value": component},
		map[string]any{"name": "POD_IP", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "status.podIP"}}},
		map[string]any{"name": "DPE_STATE", "value": "/var/run/littoral/workers.json"},
	}
	add := func(name string, value float64) {
		if value > 0 {
			env = append(env, map[string]any{"name": name, "value": strconv.FormatFloat(value, 'g', -1, 64)})
		}
	}
	add("DPE_CORES", dpe.Cores)
	add("DPE_PORT", float64(dpe.Port))
	add("DPE_MEMORY", dpe.MemoryGB)
	return map[string]any{
		"name": sidecar, "image": s.Image, "env": env,
		"envFrom":      []any{map[string]any{"secretRef": map[string]any{"name": Secret}}},
		"volumeMounts": []any{map[string]any{"name": sidecar, "mountPath": "/var/run/littoral"}},
		"resources": map[string]any{
			"requests": map[string]any{"cpu": "5m", "memory": "16Mi"}, "limits": map[string]any{"memory": "48Mi"},
		},
		"securityContext": map[string]any{
			"runAsUser": int64(65532), "runAsNonRoot": true, "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
			"capabilities": map[string]any{"drop": []any{"ALL"}}, "seccompProfile": map[string]any{"type": "RuntimeDefault"},
		},
	}
}
