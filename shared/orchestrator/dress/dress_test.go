package dress_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/dress"
	"github.com/littoral-project/littoral/shared/orchestrator/manifest"
)

const document = `name: shop
components:
  - name: web
    type: kubernetes
    dpe: {cores: 4, port: 46103, memory: 8}
    manifests:
      - name: web
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: web}
          spec:
            selector: {matchLabels: {app: web}}
            template:
              metadata: {labels: {app: web}}
              spec: {containers: [{name: web, image: example/web}]}
      - name: web
        manifest: {apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}
`

var full = dress.Settings{Tokens: bus.Tokens{Key: "key"}, Bus: "https://littoral.example/bus", Image: "example/sidecar"}

func jobOf(t *testing.T, document string) *job.Job {
	t.Helper()
	app, err := descriptor.Parse([]byte(document), nil)
	require.NoError(t, err)
	return &job.Job{
		ID: uuid.New(), ApplicationID: uuid.New(), ApplicationName: app.Name, Namespace: "shop-1", Component: app.Components[0].Name,
		Type: job.Create, Epoch: 1,
		Instruction: job.Instruction{Type: appmodel.TypeKubernetes, Contents: job.Contents(app.Components[0].Manifests)},
	}
}

func build(t *testing.T, s dress.Settings, j *job.Job) map[string]*unstructured.Unstructured {
	t.Helper()
	dressed, err := s.Job(j)
	require.NoError(t, err)
	objects, err := manifest.Build(dressed)
	require.NoError(t, err)
	all := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		all[o.GetKind()] = o
	}
	return all
}

func TestAnApplicationGetsItsOwnToken(t *testing.T) {
	t.Parallel()
	j := jobOf(t, document)
	secret := build(t, full, j)["Secret"]
	require.Equal(t, "shop-1", secret.GetNamespace())
	require.Equal(t, dress.Secret, secret.GetName())
	other := *j
	other.ID, other.Component = uuid.New(), "db"
	require.Equal(t, secret.Object["data"], build(t, full, &other)["Secret"].Object["data"], "equal for all components")
	other.ApplicationID = uuid.New()
	require.NotEqual(t, secret.Object["data"], build(t, full, &other)["Secret"].Object["data"])
	require.NotContains(t, j.Instruction.Contents, dress.Secret, "it is not stored")
}

func TestWithoutAKeyNothingIsAdded(t *testing.T) {
	t.Parallel()
	j := jobOf(t, document)
	j.Instruction.Contents = j.Instruction.Contents[1:]
	for _, s := range []dress.Settings{{}, {Bus: full.Bus, Image: full.Image}, {Tokens: full.Tokens}} {
		dressed, err := s.Job(j)
		require.NoError(t, err)
		require.Equal(t, j.Instruction, dressed.Instruction)
	}
}

func TestTheSidecarIsAddedToPodsThatAskForIt(t *testing.T) {
	t.Parallel()
	j := jobOf(t, document)
	pods := build(t, full, j)["Deployment"]
	list, _, err := unstructured.NestedSlice(pods.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	require.Len(t, list, 2)
	added, _ := list[1].(map[string]any)
	require.Equal(t, "example/sidecar", added["image"])
	env := map[string]any{}
	for _, entry := range added["env"].([]any) {
		e := entry.(map[string]any)
		env[e["name"].(string)] = e["value"]
	}
	require.Equal(t, map[string]any{
		"ICOS_APP_COMPONENT": "web", "DPE_CORES": "4", "DPE_PORT": "46103", "DPE_MEMORY": "8", "POD_IP": nil,
		"DPE_STATE": "/var/run/littoral/workers.json",
	}, env)
	require.NotContains(t, build(t, full, j)["Service"].GetAnnotations(), "littoral.dev/dpe")
}

func TestNobodyIsLeftWithoutTheSidecarSilently(t *testing.T) {
	t.Parallel()
	_, err := dress.Settings{Tokens: full.Tokens, Bus: full.Bus}.Job(jobOf(t, document))
	var refusal *orchestrator.Refusal
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, orchestrator.ReasonNotSupported, refusal.Reason)
}
