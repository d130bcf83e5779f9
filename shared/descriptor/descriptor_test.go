package descriptor_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/problem"
)

// Example reads a descriptor like the function that accepts submissions.
func Example() {
	app, err := submitted([]byte(`
name: shop
components:
- name: till
  type: kubernetes
  manifests:
  - name: till
  requirements: {cpu: 500m, memory: 200Mi, architecture: intel}
  policies:
  - security: high
manifests:
- name: till
  manifest: {apiVersion: v1, kind: Pod, metadata: {name: till}}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	till := app.Component("till")
	fmt.Println(till.Requirements.CPUMilli, till.Requirements.MemoryBytes, till.Requirements.Architecture)
	fmt.Println(app.SecurityLevel("till"), till.Manifests[0].Kind)
	// Output:
	// 500 209715200 amd64
	// 80 Pod
}

const samples = "../../test/contracts/descriptors/"

// TestPublishedSamples reads every published descriptor unchanged.
func TestPublishedSamples(t *testing.T) {
	t.Parallel()
	for file, row := range map[string]struct {
		faults   []string // of Parse; empty when it is accepted for submission
		header   []string // of ParseHeader
		warnings []string // of ParseHeader
		check    func(*testing.T, *appmodel.Application)
	}{
		"dynamic-policy-manager/app_descriptor_1.yaml": {
			warnings: []string{
				`components[0].requirements.memory (line 29): "200Mb" is no quantity of Kubernetes, taken for 200M`,
				`manifests[0].manifest.spec.containers[0].resources.requests.memory (line 84): "200Mb" is no quantity`,
			},
			check: func(t *testing.T, a *appmodel.Application) {
				require.Equal(t, []string{"ffmpeg", "mjpeg"}, names(a))
				ffmpeg, mjpeg := a.Component("ffmpeg"), a.Component("mjpeg")
				require.Equal(t, appmodel.Requirements{
					MemoryBytes: 200_000_000,
					NodeLabel:   &appmodel.NodeLabel{Key: "color", Values: []string{"green"}},
				}, ffmpeg.Requirements)
				require.Equal(t, []string{"squat.ai/video"}, mjpeg.Requirements.Devices)
				require.Equal(t, []string{"mjpeg-service Service", "mjpeg Pod"}, kinds(mjpeg))
				require.Equal(t, 80, a.SecurityLevel("ffmpeg"))
				require.Equal(t, 0, a.SecurityLevel("mjpeg"), "the policy names a component that is not there")
				performance, energy, security, set := a.ScoreWeights()
				require.Equal(t, [3]float64{0.5, 0.3, 0.2}, [3]float64{performance, energy, security})
				require.True(t, set)
			},
		},
		"dynamic-policy-manager/app_descriptor_2.yaml": {
			check: func(t *testing.T, a *appmodel.Application) {
				require.Equal(t, []string{"mjpeg-service Service", "mjpeg-pod Pod"}, kinds(a.Component("mjpeg")))
				require.Equal(t, "manifest", a.Components[0].RawType)
				require.Equal(t, appmodel.TypeKubernetes, a.Components[0].Type)
				p := a.Policies[0]
				require.Equal(t, appmodel.KindCustom, p.Kind)
				require.Equal(t, "app-host-cpu-usage", p.FromTemplate)
				require.Equal(t, "reallocate", p.Remediation)
				require.Equal(t, map[string]any{"maxCpu": 0.8}, p.Variables)
				require.True(t, p.AppliesTo("ffmpeg"), `component: "*" means all`)
			},
		},
		"dynamic-policy-manager/app_descriptor_all.yaml": {
			warnings: []string{
				`components[0].requirements.memory (line 29): "200Mb" is no quantity of Kubernetes, taken for 200M`,
				`manifests[0].manifest.spec.containers[0].resources.requests.memory (line 110): "200Mb" is no quantity`,
			},
			check: func(t *testing.T, a *appmodel.Application) {
				require.Equal(t, 80, a.SecurityLevel("ffmpeg"))
				require.Equal(t, 50, a.SecurityLevel("mjpeg"))
				own := a.Component("ffmpeg").Policies
				require.Equal(t, "my-metric > 10", own[2].Spec.Expr)
				require.Equal(t, "scale-down", own[2].Remediation)
				require.Equal(t, map[string]any{
					"thresholdTimeSeconds": int64(120), "compssTask": "provesOtel.example_task",
				}, own[1].Variables)
				require.Equal(t, []string{"ffmpeg", "mjpeg"}, a.Policies[2].ApplyTo)
			},
		},
		"dynamic-policy-manager/app_descriptor_compss_1.yaml": {
			check: func(t *testing.T, a *appmodel.Application) {
				require.Equal(t, []string{"compss-hello-world-demo Deployment"}, kinds(&a.Components[0]))
				require.Equal(t, "scale-up", a.Components[0].Policies[0].Remediation)
				require.Contains(t, a.Components[0].Manifests[0].YAML, `telemetry.icos.eu/port: "19090"`)
			},
		},
		"dynamic-policy-manager/app_descriptor_compss_2.yaml": {
			faults: []string{`components[0].manifests[0] (line 29): "compss-hello-world-demo" is not defined`},
			check: func(t *testing.T, a *appmodel.Application) {
				require.Equal(t, []appmodel.Manifest{{Name: "compss-hello-world-demo"}}, a.Components[0].Manifests)
				require.Equal(t, 80, a.SecurityLevel("compss-app"))
			},
		},
		"job-manager/descriptor_with_fixed_targets.yaml": {
			faults: []string{
				`components[0].manifests[0] (line 7): "mjpeg" is not defined`,
				`components[0].manifests[1] (line 8): "mjpeg-service" is not defined`,
				`components[1].manifests[0] (line 16): "video-streaming-service" is not defined`,
				`components[1].manifests[1] (line 17): "video-streaming-deployment" is not defined`,
			},
			check: func(t *testing.T, a *appmodel.Application) {
				require.Equal(t, []appmodel.Target{
					{Cluster: "nuvlabox/55c7953e-2aa0-4d18-834c-b4d76d824bb9", Node: "edge-rpi-1", Orchestrator: "nuvla"},
				}, a.Component("consumer").Targets)
			},
		},
		"match-making/application.yaml": {
			faults: []string{
				`manifests (line 23): "-name" is a key here, not an entry of a list: a blank is missing behind the dash, ` +
					`write "- name: ffmpeg-pod"`,
				`manifests (line 49): "-name" is a key here`,
				`manifests (line 74): "-name" is a key here`,
			},
			warnings: []string{`manifests (line 23): "-name"`, `manifests (line 49)`, `manifests (line 74)`},
			check: func(t *testing.T, a *appmodel.Application) {
				require.Equal(t, "demo-deployment-2", a.Namespace)
				require.Equal(t, int64(7<<30), a.Component("ffmpeg").Requirements.MemoryBytes)
				require.Equal(t, 80, a.SecurityLevel("ffmpeg"))
			},
		},
		"shell/app_descriptor_example.yaml": {
			faults: []string{`document (line 3): not readable as YAML`},
			header: []string{`document (line 3): not readable as YAML`},
		},
		"topology-exporter/descriptor_registered.yaml": {
			faults: []string{
				`name (line 1): "app_1" must be lower-case`,
				`components[0].name (line 3): "app_component_1" must be lower-case`,
				`components[0].manifests (line 3): is missing`,
				`components[1].name (line 4): "app_component_2" must be lower-case`,
				`components[1].manifests (line 4): is missing`,
			},
			warnings: []string{
				`name (line 1)`, `components[0].name (line 3)`, `components[0].manifests (line 3)`,
				`components[1].name (line 4)`, `components[1].manifests (line 4)`,
			},
			check: func(t *testing.T, a *appmodel.Application) {
				require.Equal(t, []string{"app_component_1", "app_component_2"}, names(a))
			},
		},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			doc, err := os.ReadFile(samples + file)
			require.NoError(t, err)

			_, err = submitted(doc)
			requireFaults(t, err, row.faults)
			app, err := asked(doc)
			requireFaults(t, err, row.header)
			if row.check == nil {
				return
			}
			requireLines(t, row.warnings, problem.Texts(app.Warnings))
			row.check(t, app)
		})
	}
}

func names(a *appmodel.Application) (out []string) {
	for i := range a.Components {
		out = append(out, a.Components[i].Name)
	}
	return out
}

func kinds(c *appmodel.Component) (out []string) {
	for _, m := range c.Manifests {
		out = append(out, m.Name+" "+m.Kind)
	}
	return out
}

// requireFaults compares the beginnings of the faults in err with those that are expected.
func requireFaults(t *testing.T, err error, want []string) {
	t.Helper()
	if len(want) == 0 {
		require.NoError(t, err)
		return
	}
	var p *problem.Error
	require.True(t, errors.As(err, &p), "want %q, got %v", want, err)
	var got []string
	for _, f := range p.Fields {
		got = append(got, f.String())
	}
	requireLines(t, want, got)
}

func requireLines(t *testing.T, want, got []string) {
	t.Helper()
	require.Len(t, got, len(want), "%s", strings.Join(got, "\n"))
	for i := range want {
		require.Truef(t, strings.HasPrefix(got[i], want[i]), "want %q first, got %q", want[i], got[i])
	}
}

// one adds the lines of a component to an otherwise valid descriptor.
func one(lines string) string {
	lines = strings.ReplaceAll("\n"+strings.TrimSpace(lines), "\n", "\n  ")
	return "components:\n- name: c\n  type: kubernetes\n  manifests:\n  - name: m\n    manifest: {apiVersion: v1, kind: Pod, metadata: {name: m}}" +
		strings.TrimRight(lines, " \n") + "\n"
}

// top adds lines at the top level of such a descriptor.
func top(lines string) string { return one("") + strings.TrimSpace(lines) + "\n" }

func TestForms(t *testing.T) {
	t.Parallel()
	type application = appmodel.Application
	for name, row := range map[string]struct {
		doc      string
		warnings []string
		check    func(*testing.T, *application)
	}{
		"a descriptor without a name keeps it empty": {doc: one(""), check: func(t *testing.T, a *application) {
			require.Empty(t, a.Name)
		}},
		"a name of figures is text": {doc: top("name: 42"), check: func(t *testing.T, a *application) {
			require.Equal(t, "42", a.Name)
		}},
		"JSON is read like YAML": {
			doc: "{\"name\": \"a\",\n\t\"description\": \"\\ud83d\\ude00 \\ud800 caf\\u00e9 \\\\ud83d\", \"components\": [" +
				`{"name":"c","type":"docker","manifests":[{"name":"m","manifest":{"services":{"web":{"image":"x"}}}}]}]}`,
			check: func(t *testing.T, a *application) {
				require.Equal(t, "😀 � café \\ud83d", a.Description)
				require.Equal(t, "services:\n  \"web\":\n    \"image\": \"x\"\n",
					strings.Replace(a.Components[0].Manifests[0].YAML, `"services"`, "services", 1))
				require.Equal(t, appmodel.TypeDocker, a.Components[0].Type)
			},
		},
		"a byte order mark and Windows line ends do no harm": {
			doc: "\ufeff" + strings.ReplaceAll(one(""), "\n", "\r\n"),
			check: func(t *testing.T, a *application) {
				require.Equal(t, []string{"c"}, names(a))
			},
		},
		"the descriptor need not be the first document, and empty documents are skipped": {
			doc: "---\nkind: Pod\nmetadata: {name: p}\n---\n---\ncomponents:\n- {name: c, type: kubernetes, " +
				"manifests: [{name: p}]}\n---\n",
			check: func(t *testing.T, a *application) {
				require.Equal(t, []string{"p Pod"}, kinds(&a.Components[0]))
			},
		},
		"objects of one name but different kinds go together": {
			doc: "components:\n- {name: c, type: kubernetes, manifests: [{name: web}]}\n" +
				"---\nkind: Deployment\nmetadata: {name: web}\n---\nkind: Service\nmetadata: {name: web}\n",
			check: func(t *testing.T, a *application) {
				require.Equal(t, []string{"web Deployment", "web Service"}, kinds(&a.Components[0]))
			},
		},
		"a component's own objects may share a name too": {
			doc: "components:\n- name: c\n  type: kubernetes\n  manifests:\n  - {name: web, manifest: {kind: Deployment}}\n" +
				"  - {name: web, manifest: {kind: Service}}\n  - manifest: {kind: Pod, metadata: {name: own}}\n",
			check: func(t *testing.T, a *application) {
				require.Equal(t, []string{"web Deployment", "web Service", "own Pod"}, kinds(&a.Components[0]))
			},
		},
		"a kind nobody knows is kept": {
			doc: "components:\n- {name: c, type: kubernetes, manifests: [q]}\nmanifests:\n- name: q\n  manifest:\n" +
				"    apiVersion: example.org/v9\n    kind: Quux\n    spec: {on: yes, mode: 0o644, at: 2020-01-01, s: \"12\"}\n",
			check: func(t *testing.T, a *application) {
				require.Equal(t, appmodel.Manifest{
					Name: "q", Kind: "Quux", APIVersion: "example.org/v9", YAML: "apiVersion: example.org/v9\n" +
						"kind: Quux\nspec:\n  on: yes\n  mode: 0o644\n  at: 2020-01-01\n  s: \"12\"\n",
				}, a.Components[0].Manifests[0])
			},
		},
		"aliases and merge keys are written out in the manifests": {
			doc: "x-base: &base {image: i, user: t}\ncomponents:\n- {name: c, type: docker, manifests: [m]}\n" +
				"manifests:\n- name: m\n  manifest:\n    services:\n" +
				"      a:\n        <<: *base\n        user: own\n      b: *base\n",
			warnings: []string{"x-base (line 1): unknown key, ignored"},
			check: func(t *testing.T, a *application) {
				require.Equal(t, "services:\n  a:\n    user: own\n    image: i\n  b:\n    image: i\n    user: t\n",
					a.Components[0].Manifests[0].YAML)
			},
		},
		"a large file inside a manifest does not count as structure": {
			doc: "components:\n- {name: c, type: kubernetes, manifests: [{name: m}]}\n---\nkind: ConfigMap\n" +
				"metadata:\n  name: m\ndata:\n  a.json: |\n    " + strings.Repeat(`{"a":[1,2,{"b":3}]},`, 30_000) + "\n",
			check: func(t *testing.T, a *application) {
				require.Greater(t, len(a.Components[0].Manifests[0].YAML), 600_000)
			},
		},
		"close to a mebibyte of ordinary objects is accepted": {
			doc: "components:\n- {name: c, type: kubernetes, manifests: [m]}\nmanifests:\n- name: m\n  manifest:\n    kind: PodList\n    items:\n" +
				strings.Repeat("    - metadata:\n        name: one-of-many-objects\n        namespace: somewhere-else\n"+
					"      image: registry.example/path/to/image:v1.2.3\n", 6_500),
			check: func(t *testing.T, a *application) {
				require.Greater(t, len(a.Components[0].Manifests[0].YAML), 800_000)
			},
		},
		"a manifest nobody names is mentioned": {
			doc:      top("manifests:\n- name: other\n  manifest: {kind: Pod}"),
			warnings: []string{`manifests[0].manifest (line 9): no component names the manifest "other"`},
			check:    func(*testing.T, *application) {},
		},
		"older component types": {
			doc: "mixedTypes: true\ncomponents:\n- {name: a, type: helm, manifests: [m]}\n- {name: b, type: container, manifests: [c]}\n" +
				"- {name: d, type: Multiple, manifests: [m]}\n- {name: e, manifests: [m]}\n" +
				"manifests:\n- {name: m, manifest: {kind: Pod}}\n- {name: c, manifest: {services: {c: {image: x}}}}\n",
			warnings: []string{
				"components[3].type (line 6): is missing, taken for kubernetes",
				"components[2].type (line 5): multiple has manifests for kubernetes only, so that it runs nowhere else",
			},
			check: func(t *testing.T, a *application) {
				require.Equal(t, []string{"kubernetes", "docker", "multiple", "kubernetes"}, []string{
					a.Components[0].Type, a.Components[1].Type, a.Components[2].Type, a.Components[3].Type,
				})
				require.Equal(t, "Multiple", a.Components[2].RawType)
			},
		},
		"every requirement": {
			doc: one(`
requirements:
  architecture: x86_64
  cpu: "0.5"
  memory: 200Mb
  devices: [a, b, a]
  gpu: 2
  storage: 10Gi
  nodelabel: {key: robot, values: [r1, r2, r1, 3]}`),
			warnings: []string{`components[0].requirements.memory (line 10): "200Mb" is no quantity of Kubernetes, taken for 200M`},
			check: func(t *testing.T, a *application) {
				require.Equal(t, appmodel.Requirements{
					Architecture: "amd64", CPUMilli: 500, MemoryBytes: 200_000_000, Devices: []string{"a", "b"},
					NodeLabel: &appmodel.NodeLabel{Key: "robot", Values: []string{"r1", "r2", "3"}},
					Resources: map[string]int64{"gpu": 2, "storage": 10 << 30},
				}, a.Components[0].Requirements)
				require.Equal(t, []appmodel.Replica{
					{Index: 0, Labels: map[string][]string{"robot": {"r1"}}},
					{Index: 1, Labels: map[string][]string{"robot": {"r2"}}},
					{Index: 2, Labels: map[string][]string{"robot": {"3"}}},
				}, a.Components[0].Replicas())
			},
		},
		"without a node label there is one replica": {doc: one(""), check: func(t *testing.T, a *application) {
			require.Equal(t, []appmodel.Replica{{}}, a.Components[0].Replicas())
		}},
		"a single node label, an unknown architecture, requirements left empty": {
			doc: one("requirements: {architecture: riscv64, cpu: 1, memory: , devices: , nodelabel: {key: k, values: v}}"),
			check: func(t *testing.T, a *application) {
				require.Equal(t, "riscv64", a.Components[0].Requirements.Architecture)
				require.Equal(t, []appmodel.Replica{{Labels: map[string][]string{"k": {"v"}}}}, a.Components[0].Replicas())
			},
		},
		"memory without its unit is suspect": {
			doc: one("requirements: {memory: 512}"), warnings: []string{"components[0].requirements.memory (line 7): 512 means"},
			check: func(t *testing.T, a *application) {
				require.Equal(t, int64(512), a.Components[0].Requirements.MemoryBytes)
			},
		},
		"a target as an object": {
			doc: one("targets: {cluster_name: k, node_name: n, orchestrator: OCM}"), check: func(t *testing.T, a *application) {
				require.Equal(t, []appmodel.Target{{Cluster: "k", Node: "n", Orchestrator: "ocm"}}, a.Components[0].Targets)
			},
		},
		"an empty list of targets": {doc: one("targets: []"), check: func(t *testing.T, a *application) {
			require.Empty(t, a.Components[0].Targets)
		}},
		"a target with nothing in it": {
			doc: one(`targets: {cluster_name: "", node_name: "", orchestrator: ""}`), check: func(t *testing.T, a *application) {
				require.Empty(t, a.Components[0].Targets)
			},
		},
		"communication as a list and as an object of lists": {
			doc: `
components:
- {name: a, type: kubernetes, manifests: [pod], communication: [{incoming: db}, {incoming: [cache]}, {outgoing: web}]}
- {name: b, type: kubernetes, manifests: [db, cache], communication: {outgoing: [db, cache]}}
manifests:
- {name: pod, manifest: {kind: Pod}}
- {name: db, manifest: {kind: Service, metadata: {name: db}}}
- {name: cache, manifest: {kind: Service, metadata: {name: cache}}}`,
			check: func(t *testing.T, a *application) {
				require.Equal(t, appmodel.Communication{Incoming: []string{"db", "cache"}, Outgoing: []string{"web"}},
					a.Components[0].Communication)
				require.Equal(t, []string{"db", "cache"}, a.Components[1].Communication.Outgoing)
			},
		},
		"a component may do without a link to what it needs": {
			doc: `
components:
- name: a
  type: kubernetes
  manifests: [pod]
  communication: [{incoming: db, optional: true}, {incoming: cache}, {outgoing: web, optional: true}]
- {name: b, type: kubernetes, manifests: [db, cache], communication: {outgoing: [db, cache]}}
manifests:
- {name: pod, manifest: {kind: Pod}}
- {name: db, manifest: {kind: Service, metadata: {name: db}}}
- {name: cache, manifest: {kind: Service, metadata: {name: cache}}}`,
			check: func(t *testing.T, a *application) {
				require.Equal(t, appmodel.Communication{
					Incoming: []string{"db", "cache"}, Outgoing: []string{"web"}, Optional: []string{"db"},
				}, a.Components[0].Communication)
			},
		},
		"communication the other way round is turned": {
			doc: `
components:
- {name: a, type: docker, manifests: [pod], communication: {outgoing: db, incoming: nowhere}}
- {name: b, type: docker, manifests: [stack], communication: {incoming: db}}
manifests:
- {name: pod, manifest: {services: {pod: {image: x}}}}
- {name: stack, manifest: {services: {db: {image: x}}}}`,
			warnings: []string{
				`components[0].communication: outgoing "db" is a Service of another component`,
				`components[1].communication: incoming "db" is a Service of this component`,
				`components[0].communication: no component offers "nowhere"`,
			},
			check: func(t *testing.T, a *application) {
				require.Equal(t, []string{"db", "nowhere"}, a.Components[0].Communication.Incoming)
				require.Empty(t, a.Components[0].Communication.Outgoing)
				require.Equal(t, []string{"db"}, a.Components[1].Communication.Outgoing)
			},
		},
		"scaling has defaults": {doc: one("scaling: {maxReplicas: 5}"), check: func(t *testing.T, a *application) {
			require.Equal(t, &appmodel.Scaling{MinReplicas: 1, MaxReplicas: 5, Step: 1}, a.Components[0].Scaling)
		}},
		"the last replica is never scaled away": {
			doc:      one("scaling: {minReplicas: 0, maxReplicas: 2}"),
			warnings: []string{"components[0].scaling.minReplicas (line 7): is 0, taken for 1"},
			check: func(t *testing.T, a *application) {
				require.Equal(t, &appmodel.Scaling{MinReplicas: 1, MaxReplicas: 2, Step: 1}, a.Components[0].Scaling)
			},
		},
		"sections nobody defined are mentioned": {
			doc: top("dependencies: {a: b}\nrequirements: {cpu: 1}\ncolour: red"),
			warnings: []string{
				"dependencies: ignored", "requirements: ignored", "colour (line 9): unknown key",
			},
			check: func(*testing.T, *application) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app, err := submitted([]byte(row.doc))
			require.NoError(t, err)
			requireLines(t, row.warnings, problem.Texts(app.Warnings))
			row.check(t, app)
		})
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	type application = appmodel.Application
	for name, row := range map[string]struct {
		top, own string
		warnings []string
		check    func(*testing.T, *application)
	}{
		"security, short form": {top: "- security: high", check: func(t *testing.T, a *application) {
			require.Equal(t, 80, a.SecurityLevel("c"))
			require.Equal(t, "reallocate", a.Policies[0].Remediation)
		}},
		"security by level": {own: "- {type: security, level: medium}", check: func(t *testing.T, a *application) {
			require.Equal(t, 50, a.SecurityLevel("c"))
			require.Equal(t, "c", a.Components[0].Policies[0].Component)
			require.Zero(t, a.SecurityLevel("another"))
		}},
		"security by score": {top: "- {type: security, threshold: 66.5}", check: func(t *testing.T, a *application) {
			require.Equal(t, 67, a.SecurityLevel("c"))
		}},
		"the strictest security policy counts": {
			top: "- security: low\n- {security: high, apply-to: other}", own: "- security: medium",
			check: func(t *testing.T, a *application) {
				require.Equal(t, 50, a.SecurityLevel("c"))
			},
		},
		"what is done instead, in the word of another document": {
			top: "- {security: high, remediation_action: none}", check: func(t *testing.T, a *application) {
				require.Equal(t, "none", a.Policies[0].Remediation)
			},
		},
		"node usage": {
			top: "- {type: node-resource-usage, cpu_threshold_perc: 0.8, memory_threshold_perc: 0.6, memory_threshold: 200Mi}",
			own: "- {type: node-resource-usage, cpu_threshold_perc: 0.9, memory_threshould: 100Mi, " +
				"exclude_app_resources: false}",
			check: func(t *testing.T, a *application) {
				cpu, memory, free := a.NodeUsage("c")
				require.Equal(t, [2]float64{0.8, 0.6}, [2]float64{cpu, memory})
				require.Equal(t, int64(200<<20), free)
				require.True(t, a.Policies[0].Usage.ExcludeApp)
				require.False(t, a.Components[0].Policies[0].Usage.ExcludeApp)
			},
		},
		"lost telemetry, short form": {own: "- redeployOnLostTelemetry: 15m", check: func(t *testing.T, a *application) {
			requireTimeout(t, a, "c", 15*time.Minute)
		}},
		"lost telemetry, long form": {
			own: "- {type: redeployOnLostTelemetry, timeout: 90s}", check: func(t *testing.T, a *application) {
				requireTimeout(t, a, "c", 90*time.Second)
			},
		},
		"lost telemetry without a time": {own: "- type: redeployOnLostTelemetry", check: func(t *testing.T, a *application) {
			requireTimeout(t, a, "c", 5*time.Minute)
		}},
		"lost telemetry of the component goes first": {
			top: "- redeployOnLostTelemetry: 1m\n- redeployOnLostTelemetry: 2m", own: "- redeployOnLostTelemetry: 1h",
			check: func(t *testing.T, a *application) {
				requireTimeout(t, a, "c", time.Hour)
				requireTimeout(t, a, "another", time.Minute)
			},
		},
		"nothing watches the telemetry": {check: func(t *testing.T, a *application) {
			_, ok := a.LostTelemetry("c")
			require.False(t, ok)
		}},
		"weights as shares": {
			top: "- {type: scheduler, performance: 0.5, energy: 0.3, security: 0.2}",
			check: func(t *testing.T, a *application) {
				requireWeights(t, a, 0.5, 0.3, 0.2)
			},
		},
		"weights of hundred": {
			top: "- {type: user-preference, performance: 50, energyconsumption: 25, security: 25}",
			check: func(t *testing.T, a *application) {
				requireWeights(t, a, 0.5, 0.25, 0.25)
			},
		},
		"the first weights count, and only those of the application": {
			top: "- {type: scheduler, energy: 1}\n- {type: scheduler, security: 1}", own: "- {type: scheduler, performance: 1}",
			warnings: []string{
				"components[0].policies[0] (line 8): ignored: weights belong", "policies[1]: ignored: an earlier policy",
			},
			check: func(t *testing.T, a *application) {
				requireWeights(t, a, 0, 1, 0)
			},
		},
		"without weights all are equal": {check: func(t *testing.T, a *application) {
			performance, _, _, set := a.ScoreWeights()
			require.InDelta(t, 1.0/3, performance, 1e-9)
			require.False(t, set)
		}},
		"a template": {
			own: "- {type: custom, fromTemplate: compss-under-allocation, remediation: scale-up, " +
				"variables: {a: 1, b: x, c: 0.5}}",
			check: func(t *testing.T, a *application) {
				p := a.Components[0].Policies[0]
				require.Equal(t, "compss-under-allocation", p.FromTemplate)
				require.Equal(t, map[string]any{"a": int64(1), "b": "x", "c": 0.5}, p.Variables)
				require.Equal(t, "custom", p.Raw["type"])
			},
		},
		"an expression": {
			top: `
- name: n
  spec: {expr: "x{{a}}", violatedIf: "> 0.5", thresholds: {warning: 1, critical: 2.5}}
  remediation: redeploy
  properties: {pendingInterval: 5m, oneoff: true}`,
			check: func(t *testing.T, a *application) {
				p := a.Policies[0]
				require.Equal(t, appmodel.KindCustom, p.Kind)
				require.Equal(t, &appmodel.Spec{
					Expr: "x{{a}}", ViolatedIf: "> 0.5", Thresholds: map[string]float64{"warning": 1, "critical": 2.5},
				}, p.Spec)
				require.Equal(t, 5*time.Minute, p.Pending)
				require.Equal(t, map[string]any{"pendingInterval": "5m", "oneoff": true}, p.Properties)
			},
		},
		"constraints": {
			top: "- {spec: {type: constraints, constraints: {x: [1]}}, remediation: none}",
			check: func(t *testing.T, a *application) {
				require.Equal(t, map[string]any{"x": []any{int64(1)}}, a.Policies[0].Spec.Constraints)
			},
		},
		"a custom policy that does nothing": {
			top: "- spec: {expr: x}", warnings: []string{"policies[0].remediation (line 8): is missing"},
			check: func(t *testing.T, a *application) {
				require.Equal(t, "none", a.Policies[0].Remediation)
			},
		},
		"a type nobody knows is kept and ignored": {
			top: "- {type: performance, x: {y: [1, 2.5, true, null, 9e999]}}",
			warnings: []string{
				`policies[0].type (line 8): "performance" is not a known type of policy, ignored`,
			},
			check: func(t *testing.T, a *application) {
				require.Equal(t, appmodel.KindOther, a.Policies[0].Kind)
				require.Equal(t, map[string]any{
					"type": "performance", "x": map[string]any{"y": []any{int64(1), 2.5, true, nil, "9e999"}},
				}, a.Policies[0].Raw)
			},
		},
		"a scope inside a component is ignored": {
			own: "- {security: low, apply-to: [x], lvel: 1}",
			warnings: []string{
				"components[0].policies[0].apply-to (line 8): ignored", "components[0].policies[0].lvel (line 8): unknown key",
			},
			check: func(t *testing.T, a *application) {
				require.Empty(t, a.Components[0].Policies[0].ApplyTo)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := one("")
			if row.own != "" {
				doc = one("policies:\n" + row.own)
			}
			if row.top != "" {
				doc += "policies:\n" + strings.TrimSpace(row.top) + "\n"
			}
			app, err := submitted([]byte(doc))
			require.NoError(t, err)
			requireLines(t, row.warnings, problem.Texts(app.Warnings))
			row.check(t, app)
		})
	}
}

func requireTimeout(t *testing.T, a *appmodel.Application, component string, want time.Duration) {
	t.Helper()
	got, ok := a.LostTelemetry(component)
	require.True(t, ok)
	require.Equal(t, want, got)
}

func requireWeights(t *testing.T, a *appmodel.Application, performance, energy, security float64) {
	t.Helper()
	p, e, s, set := a.ScoreWeights()
	require.True(t, set)
	require.InDeltaSlice(t, []float64{performance, energy, security}, []float64{p, e, s}, 1e-9)
}

func TestRemediation(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"redeploy": "reallocate", "migrate": "reallocate", "reallocation": "reallocate", "Reallocate": "reallocate",
		"none": "none", "scale-up": "scale-up", "scale_in": "scale-in", "secure": "secure", "explode": "",
	} {
		got, ok := appmodel.Remediation(written)
		require.Equal(t, want, got, written)
		require.Equal(t, want != "", ok, written)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		doc    string
		faults []string
	}{
		"all of them are reported at once, each with its line": {
			doc: `name: Bad_Name
components:
- name: UPPER
  type: virtual
  manifests: [{name: gone}]
  requirements:
    cpu: -1
    memory: lots
- name: fine
  manifests: []
policies:
- security: extreme
`,
			faults: []string{
				`name (line 1): "Bad_Name" must be lower-case`,
				`components[0].name (line 3): "UPPER" must be lower-case`,
				`components[0].type (line 4): "virtual" is not a component type`,
				`components[0].manifests[0] (line 5): "gone" is not defined`,
				`components[0].requirements.cpu (line 7): "-1" is negative`,
				`components[0].requirements.memory (line 8): "lots" is not a quantity`,
				`components[1].manifests (line 10): is empty`,
				`policies[0].security (line 12): "extreme" is not a security level`,
			},
		},
		"JSON has lines too": {
			doc:    "{\"components\": [\n {\"name\": \"c\", \"manifests\": [{\"name\": \"m\"}]}\n]}",
			faults: []string{`components[0].manifests[0] (line 2): "m" is not defined`},
		},
		"no components": {"name: a\n", []string{"components (line 1): is missing"}},
		"objects that are not below the key manifest": {
			"components:\n- name: c\n  manifests:\n  - apiVersion: v1\n    kind: Pod\n    metadata: {name: p}\n  - m\n" +
				"manifests:\n- {apiVersion: v1, kind: Service, metadata: {name: m}}\n",
			[]string{
				"manifests[0] (line 9): is an object of Kubernetes itself",
				`components[0].manifests[0] (line 4): is an object of Kubernetes itself: it belongs below the key "manifest"`,
			},
		},
		"an empty list of components": {
			"name: a\ncomponents: []\n", []string{"components (line 2): is empty"},
		},
		"components that are no list": {
			"components: all\n", []string{`components (line 1): must be a list, not the text "all"`},
		},
		"a component that is no object": {
			"components:\n- c\n", []string{`components[0] (line 2): must be an object, not the text "c"`},
		},
		"a component without a name": {
			"components:\n- {manifests: [{name: m, manifest: {kind: Pod}}]}\n",
			[]string{"components[0].name (line 2): is missing"},
		},
		"the same component twice": {
			one("") + "- name: c\n  manifests: [{name: m, manifest: {kind: Pod}}]\n",
			[]string{`components[1].name (line 7): "c" is the name of the component on line 2 already`},
		},
		"a name with a hyphen at its end": {
			strings.Replace(one(""), "name: c", "name: c-", 1), []string{`components[0].name (line 2): "c-" must be`},
		},
		"a component name of 64 characters": {
			strings.Replace(one(""), "name: c", "name: "+strings.Repeat("a", 64), 1), []string{"components[0].name (line 2): "},
		},
		"an application name that leaves no room for the id": {
			top("name: " + strings.Repeat("a", 55)), []string{"name (line 7): "},
		},
		"the same key twice": {
			top("name: a\nname: b"),
			[]string{`name (line 8): the key "name" is here a second time; the first is on line 7`},
		},
		"the same key twice deep inside a manifest": {
			"components:\n- {name: c, manifests: [m]}\n---\nkind: Pod\nmetadata:\n  name: m\n  name: m\n",
			[]string{`documents[1].metadata.name (line 7): the key "name" is here a second time`},
		},
		"a key that is a list": {top("? [a]\n: b"), []string{"document (line 7): a key"}},
		"two descriptors": {
			one("") + "---\n" + one(""), []string{"documents[1] (line 8): is a second descriptor"},
		},
		"a document without a name": {
			one("") + "---\nkind: Pod\n", []string{"documents[1].metadata.name (line 8): is missing"},
		},
		"a document that is text": {one("") + "---\nhello\n", []string{"documents[1] (line 8): must be an object"}},
		"a manifest defined twice": {
			top("manifests:\n- {name: x, manifest: {kind: Pod}}\n- {name: x, manifest: {kind: Pod}}"),
			[]string{`manifests[1].manifest (line 9): "x" is defined a second time; the first is on line 8`},
		},
		"a component that has the same object twice": {
			"components:\n- name: c\n  manifests:\n  - {name: m, manifest: {kind: Pod}}\n  - {name: m, manifest: {kind: Pod}}\n",
			[]string{`components[0].manifests[1].manifest (line 5): this component has the Pod "m" already`},
		},
		"a manifest without its object": {
			top("manifests:\n- {name: x}\n- {manifest: {kind: Pod}}\n- {name: y, manifest: text}"),
			[]string{
				`manifests[0].manifest (line 8): is missing: "x" has no object`, "manifests[1].name (line 9): is missing",
				"manifests[2].manifest (line 10): must be an object",
			},
		},
		"a blank missing behind a dash, anywhere": {
			doc: "components:\n- name: c\n  manifests:\n    -name: m\n  policies:\n    -security: high\n" +
				"- name: d\n  manifests:\n  - -name: m\n",
			faults: []string{
				`components[0].manifests (line 4): "-name" is a key here, not an entry of a list: a blank is missing ` +
					`behind the dash, write "- name: m"`,
				`components[0].policies (line 6): "-security" is a key here`,
				`components[1].manifests[0] (line 9): "-name" is a key here`,
			},
		},
		"a blank missing behind a colon": {
			top("policies:\n- type: scheduler\n  energy: 0.3\n    security:0.2"),
			[]string{
				`policies[0].energy (line 9): "0.3 security:0.2" is not a number; is a blank missing`, "policies[0] (line 8): ",
			},
		},
		"requirements that make no sense": {
			one("requirements: {cpu: 9999999999, memory: -1, gpu: some, place: [x], devices: {a: b}, nodelabel: {color: red}}"),
			[]string{
				`components[0].requirements.cpu (line 7): "9999999999" is more than a million cores`,
				`components[0].requirements.memory (line 7): "-1" is negative`,
				`components[0].requirements.devices (line 7): must be text, not an object`,
				`components[0].requirements.nodelabel.key (line 7): is missing`,
				`components[0].requirements.nodelabel.values (line 7): is missing`,
				`components[0].requirements.gpu (line 7): "some" is not a quantity`,
				`components[0].requirements.place (line 7): is not a known requirement`,
			},
		},
		"a target that names no place": {
			one("targets: [{orchestrator: ocm}]"), []string{"components[0].targets[0] (line 7): names neither"},
		},
		"scaling upside down": {
			one("scaling: {minReplicas: 5, maxReplicas: 2, step: 0.5}"),
			[]string{
				"components[0].scaling.step (line 7): must be between 1", "components[0].scaling.maxReplicas (line 7): is 2",
			},
		},
		"scaling without end": {
			one("scaling: {minReplicas: 2, maxReplicas: .inf}"),
			[]string{`components[0].scaling.maxReplicas (line 7): ".inf" is not a number`},
		},
		"policies that make no sense": {
			top(`
policies:
- {type: security}
- {type: security, threshold: 101}
- {name: x}
- {type: custom}
- {fromTemplate: a, spec: {expr: b}}
- {spec: {}}
- {type: node-resource-usage}
- {type: node-resource-usage, cpu_threshold_perc: 80}
- {redeployOnLostTelemetry: 15}
- {redeployOnLostTelemetry: 0s}
- {security: low, remediation: explode}
- {security: low, apply-to: []}
- {fromTemplate: a, variables: {x: [1]}}
- {type: scheduler, performance: 0}
- text`),
			[]string{
				"policies[0].level (line 8): is missing",
				"policies[1].threshold (line 9): must be between 0 and 100, not 101",
				"policies[2] (line 10): is not a known policy",
				"policies[3] (line 11): needs fromTemplate or spec",
				"policies[4].spec (line 12): stands beside fromTemplate",
				"policies[5].spec.expr (line 13): is missing",
				"policies[6] (line 14): has no threshold",
				"policies[7].cpu_threshold_perc (line 15): must be between 0 and 1, not 80",
				`policies[8].redeployOnLostTelemetry (line 16): "15" is not a duration`,
				"policies[9].redeployOnLostTelemetry (line 17): must be longer than zero",
				`policies[10].remediation (line 18): "explode" is not a remediation`,
				"policies[11].apply-to (line 19): names no component",
				"policies[12].variables.x (line 20): must be text or a number, not a list",
				"policies[13] (line 21): has no weight above zero",
				`policies[14] (line 22): must be an object`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := submitted([]byte(row.doc))
			requireFaults(t, err, row.faults)
			require.Equal(t, problem.Invalid, problem.KindOf(err))
		})
	}
}

// robots has a component with that many bytes of manifests on that many nodes.
func robots(nodes, bytes int, more string) string {
	var values []string
	for i := range nodes {
		values = append(values, fmt.Sprint("r", i))
	}
	return "components:\n- name: c\n  requirements:\n    nodelabel: {key: robot, values: [" + strings.Join(values, ",") + "]}\n" +
		"  manifests:\n  - {name: m, manifest: {kind: ConfigMap, data: {text: " + strings.Repeat("x", bytes) + "}}}\n" + more
}

// TestSubmissionFaults: refused in a submission, but accepted when read from the database.
func TestSubmissionFaults(t *testing.T) {
	t.Parallel()
	component := func(name, fields string) string { return "- {name: " + name + ", " + fields + "}\n" }
	inline := func(objects ...string) string {
		var entries []string
		for i, o := range objects {
			entries = append(entries, fmt.Sprintf("{name: m%d, manifest: %s}", i, o))
		}
		return "manifests: [" + strings.Join(entries, ", ") + "]"
	}
	config := func(apiVersion, data string) string {
		return "{apiVersion: " + apiVersion + ", kind: ConfigMap, metadata: {name: shared}, data: " + data + "}"
	}
	deployment := func(spec, container string) string {
		return "{apiVersion: apps/v1, kind: Deployment, spec: {" + spec + ", template: {spec: {containers: [{" + container + "}]}}}}"
	}
	service := func(ports string) string { return "{apiVersion: v1, kind: Service, spec: {ports: [" + ports + "]}}" }
	const top = "manifests:\n- {name: shared, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: shared}}}\n" +
		"- {name: web, manifest: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}}\n"
	for name, row := range map[string]struct {
		doc    string
		faults []string
	}{
		"as many jobs as may be": {robots(999, 10, component("d", inline("{kind: Pod}"))), nil},
		"more jobs than may be": {
			robots(999, 10, component("d", inline("{kind: Pod}"))+component("e", inline("{kind: Pod}"))),
			[]string{"components[0].requirements.nodelabel.values (line 4): are 999, so that the application has 1001 jobs; 1000 are allowed"},
		},
		"manifests that are large on one node": {robots(1, 900_000, ""), nil},
		"and too large on five": {
			robots(5, 900_000, ""),
			[]string{"components[0].requirements.nodelabel.values (line 4): have the manifests written once for each: those of all jobs together have 45"},
		},
		"both at once": {robots(1001, 5000, ""), []string{
			"components[0].requirements.nodelabel.values (line 4): are 1001",
			"components[0].requirements.nodelabel.values (line 4): have the manifests",
		}},
		"an object that two list": {
			"components:\n" + component("a", "manifests: [shared, web]") + component("b", "manifests: [shared]") + top, nil,
		},
		"an object that two define alike": {
			"components:\n" + component("a", inline(config("v1", "{x: '1', y: b}"))) + component("b", inline(config("v1", `{y: "b", "x": "1"}`))), nil,
		},
		"an object that two define differently": {
			"components:\n" + component("a", inline("{kind: Pod}", config("v1", "{x: '1'}"))) +
				component("b", inline("{kind: Pod}", config("v1", "{x: 1}"))),
			[]string{`components[1].manifests[1] (line 3): the ConfigMap "shared" is in component "a" already, with other content`},
		},
		"one that is defined at the top level and by a component": {
			"components:\n" + component("a", "manifests: [shared, web]") + component("b", inline(config("v1", "{}"))) + top,
			[]string{`components[1].manifests[0] (line 3): the ConfigMap "shared" is in component "a" already`},
		},
		"objects of one name in two groups": {
			"components:\n" + component("a", inline(config("v1", "{x: a}"))) + component("b", inline(config("example.org/v1", "{x: b}"))), nil,
		},
		"an object in two versions": {
			"components:\n" + component("a", inline(config("example.org/v1", "{}"))) + component("b", inline(config("example.org/v2", "{}"))),
			[]string{`components[1].manifests[0] (line 3): the ConfigMap "shared"`},
		},
		"pods that two list": {
			"components:\n" + component("a", "manifests: [web]") + component("b", "manifests: [shared, web]") + top,
			[]string{`components[1].manifests[1] (line 3): the Deployment "web" is in component "a" already; what bears pods belongs`},
		},
		"pods that three list": {
			"components:\n" + component("a", "manifests: [web]") + component("b", "manifests: [web]") + component("c", "manifests: [web]") + top,
			[]string{
				`components[1].manifests[0] (line 3): the Deployment "web" is in component "a"`,
				`components[2].manifests[0] (line 4): the Deployment "web" is in component "a"`,
			},
		},
		"pods that two list in two clusters": {
			"components:\n" + component("a", "targets: {cluster_name: x}, manifests: [web]") +
				component("b", "targets: [{cluster_name: y}], manifests: [web]") + top, nil,
		},
		"pods that two list in one cluster": {
			"components:\n" + component("a", "targets: {cluster_name: x}, manifests: [web]") +
				component("b", "targets: [{cluster_name: y}, {cluster_name: x}], manifests: [web]") + top,
			[]string{`components[1].manifests[0] (line 3): the Deployment "web" is in component "a"`},
		},
		"pods in one cluster, and perhaps there as well": {
			"components:\n" + component("a", "targets: {cluster_name: x}, manifests: [web]") +
				component("b", "targets: {node_name: n}, manifests: [web]") + top,
			[]string{`components[1].manifests[0] (line 3): the Deployment "web" is in component "a"`},
		},
		"pods anywhere, and in a cluster": {
			"components:\n" + component("a", "manifests: [web]") + component("b", "targets: {cluster_name: x}, manifests: [web]") + top,
			[]string{`components[1].manifests[0] (line 3): the Deployment "web" is in component "a"`},
		},
		"numbers that a cluster takes": {
			"components:\n" + component("a", inline(
				deployment("replicas: 2147483647", "ports: [{containerPort: 1}, {containerPort: 65535, hostPort: 0}]"),
				service("{port: 0x50, nodePort: 0}, {port: 80.0, targetPort: http}, {port: 1}"),
				"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {minReplicas: 0, maxReplicas: 1}}",
				"{apiVersion: example.org/v1, kind: Deployment, spec: {replicas: many}}",
			)), nil,
		},
		"copies that no cluster counts": {
			"components:\n" + component("a", inline(deployment("replicas: 99999999999", ""))) +
				component("b", inline(deployment("replicas: -1", ""))) + component("c", inline(deployment("replicas: '3'", ""))) +
				component("d", inline(deployment("replicas: 2.5", ""))) + component("e", inline(deployment("replicas: .nan", ""))) +
				component("f", inline(deployment("replicas: [1]", ""))) + component("g", inline(deployment("replicas: 2147483648", ""))) +
				component("h", inline(deployment("replicas: 99999999999999999999", ""))) + component("i", "manifests: [top]") +
				"manifests: [{name: top, manifest: " + deployment("replicas: true", "") + "}]\n",
			[]string{
				`components[0].manifests[0].manifest.spec.replicas (line 2): must be a whole number from 0 to 2147483647, not 99999999999`,
				`components[1].manifests[0].manifest.spec.replicas (line 3): must be`,
				`components[2].manifests[0].manifest.spec.replicas (line 4): must be a whole number from 0 to 2147483647, not the text "3"`,
				`components[3].manifests[0].manifest.spec.replicas (line 5): must be`,
				`components[4].manifests[0].manifest.spec.replicas (line 6): must be`,
				`components[5].manifests[0].manifest.spec.replicas (line 7): must be a whole number from 0 to 2147483647, not a list`,
				`components[6].manifests[0].manifest.spec.replicas (line 8): must be`,
				`components[7].manifests[0].manifest.spec.replicas (line 9): must be`,
				`manifests[0].manifest.spec.replicas (line 11): must be`,
			},
		},
		"bounds of an autoscaler": {
			"components:\n" + component("a", inline("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {minReplicas: -1, maxReplicas: 0}}")),
			[]string{
				"components[0].manifests[0].manifest.spec.minReplicas (line 2): must be",
				"components[0].manifests[0].manifest.spec.maxReplicas (line 2): must be a whole number from 1 to 2147483647",
			},
		},
		"ports that there are not": {
			"components:\n" + component("a", inline(
				deployment("replicas: 1", "ports: [{containerPort: 0}, {containerPort: 80, hostPort: 70000}]"),
				service("{port: 99999, nodePort: '80'}"),
				"{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {containers: [{ports: [{containerPort: 1.5}]}]}}}}}}",
				"{apiVersion: v1, kind: Pod, spec: {containers: [{ports: 80}, {ports: [{containerPort: null}, {containerPort: http}]}]}}",
			)),
			[]string{
				"components[0].manifests[0].manifest.spec.template.spec.containers[0].ports[0].containerPort (line 2): must be a whole number from 1 to 65535",
				"components[0].manifests[0].manifest.spec.template.spec.containers[0].ports[1].hostPort (line 2): must be",
				"components[0].manifests[1].manifest.spec.ports[0].port (line 2): must be",
				"components[0].manifests[1].manifest.spec.ports[0].nodePort (line 2): must be",
				"components[0].manifests[2].manifest.spec.jobTemplate.spec.template.spec.containers[0].ports[0].containerPort (line 2): must be",
				"components[0].manifests[3].manifest.spec.containers[1].ports[1].containerPort (line 2): must be",
			},
		},
		"what has no name": {
			"components:\n" + component("a", inline("{kind: Pod}")) + component("b", inline("{kind: Pod}")), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := submitted([]byte(row.doc))
			requireFaults(t, err, row.faults)
			_, err = descriptor.ParseStored([]byte(row.doc))
			require.NoError(t, err)
			_, err = asked([]byte(row.doc))
			require.NoError(t, err)
		})
	}
}

func TestParseHeader(t *testing.T) {
	t.Parallel()
	app, err := asked([]byte("components:\n- {name: c, manifests: [{name: a}, {name: b}]}\n---\n" +
		"kind: Pod\nmetadata: {name: b}\n"))
	require.NoError(t, err)
	require.Equal(t, "a", app.Components[0].Manifests[0].Name)
	require.Empty(t, app.Components[0].Manifests[0].YAML)
	require.Equal(t, "Pod", app.Components[0].Manifests[1].Kind)

	_, err = asked([]byte("components:\n- {name: c, requirements: {cpu: x}}\n"))
	require.Equal(t, problem.Invalid, problem.KindOf(err), "requirements are checked in a header as well")
}

// TestParse_ofWhatCannotBeRead: each error says what to change in the file.
func TestParse_ofWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	const tab = "not readable as YAML: a tab indents this line"
	for name, row := range map[string]struct{ doc, says string }{
		"a tab before an entry":          {"name: a\ncomponents:\n\t- name: b\n", "document (line 3): " + tab},
		"a tab behind a dash":            {"name: a\r\ncomponents:\r\n-\tname: b\r\n\ttype: docker\r\n", "document (line 3): " + tab},
		"a tab before all":               {"\tname: a\n", "document (line 1): " + tab},
		"no tab, but a reserved letter":  {"name: a\ncomponents: @all\t\n", "document (line 2): not readable as YAML: found character"},
		"an anchor that there is not":    {"components: *all\n", "the descriptor is not readable as YAML: unknown anchor"},
		"UTF-16 of a shell of Windows":   {"\xff\xfen\x00a\x00", "document (line 1): the descriptor is UTF-16 text"},
		"UTF-16 the other way round":     {"\xfe\xff\x00n\x00a", "document (line 1): the descriptor is UTF-16 text"},
		"what is neither UTF-16 nor -8 ": {"n\x00a\x00", "document (line 1): the descriptor contains a NUL byte"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := submitted([]byte(row.doc))
			require.Equal(t, problem.Malformed, problem.KindOf(err))
			require.ErrorContains(t, err, row.says)
		})
	}
}

// TestParse_ofATargetThatNamesNoPlace: the component could go anywhere, although the user meant a place.
func TestParse_ofATargetThatNamesNoPlace(t *testing.T) {
	t.Parallel()
	for _, targets := range []string{"{node: n}", "[{cluster_name: k}, {cluster: k, node: n}]"} {
		doc := []byte(one("targets: " + targets))
		_, err := submitted(doc)
		require.Equal(t, problem.Invalid, problem.KindOf(err))
		require.ErrorContains(t, err, "(line 7): names neither cluster_name nor node_name")
		_, err = descriptor.ParseStored(doc)
		require.NoError(t, err, "it was accepted before")
		app, err := asked(doc)
		require.NoError(t, err)
		require.Contains(t, strings.Join(problem.Texts(app.Warnings), "\n"), "(line 7): names neither")
	}
}

func TestANameThatIsNoLabelIsRefusedWithTheNearestThatIs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"my_application":       `: write "my-application"`,
		"My Shop (v2)":         `: write "my-shop-v2"`,
		"-a--b-":               `: write "a-b"`,
		"Größe":                `: write "gr-e"`,
		"_":                    "at both ends",
		strings.Repeat("A", 9): `: write "aaaaaaaaa"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const rest = "\ncomponents: [{name: web, type: kubernetes, manifests: [{name: p, manifest: {apiVersion: v1, kind: Pod}}]}]\n"
			_, err := submitted([]byte("name: " + name + rest))
			var refused *problem.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, "name", refused.Fields[0].Path)
			require.Equal(t, 1, refused.Fields[0].Line)
			require.True(t, strings.HasSuffix(refused.Fields[0].Detail, want), refused.Fields[0].Detail)
			_, err = descriptor.ParseStored([]byte("name: " + name + rest))
			require.Error(t, err, "this was never accepted")
		})
	}
}
