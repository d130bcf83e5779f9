package descriptor_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/problem"
)

// pod returns a descriptor of one component with a Pod that has the resources and is further as given.
func pod(need, resources, more string) string {
	return "components:\n- name: web\n  type: kubernetes\n  requirements: {" + need + "}\n  manifests:\n  - name: p\n    manifest:\n" +
		"      {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {" + more + "containers: [{name: c, resources: {" + resources + "}}]}}\n"
}

func TestManifestsThatCannotWorkInTheirComponentAreRefused(t *testing.T) {
	t.Parallel()
	const in = "components[0].manifests[0].manifest.spec."
	for name, row := range map[string]struct {
		doc   string
		fault string
	}{
		"a compose file in a kubernetes component": {
			strings.Replace(typed("", "docker"), "type: docker", "type: kubernetes", 1),
			`components[0].manifests[0] (line 2): "c" is a compose file, which Kubernetes cannot run`,
		},
		"a Kubernetes object in a docker component": {
			strings.Replace(typed("", "kubernetes"), "type: kubernetes", "type: docker", 1),
			`components[0].manifests[0] (line 2): "pa" is a Kubernetes Pod, which Docker cannot run`,
		},
		"an object that is neither": {
			"components:\n- {name: a, type: multiple, manifests: [{name: x, manifest: {image: y}}]}\n",
			`components[0].manifests[0] (line 2): "x" is neither a Kubernetes object`,
		},
		"a compose file without services": {
			"components:\n- {name: a, type: docker, manifests: [{name: x, manifest: {services: {}}}]}\n",
			`components[0].manifests[0].manifest.services (line 2): must be an object with at least one service`,
		},
		"an architecture that no node has": {
			pod("architecture: sparc", "", ""), `components[0].requirements.architecture (line 4): "sparc" is no architecture`,
		},
		"an amount with an unknown unit": {
			pod("", "requests: {memory: 200Mo}", ""),
			in + `containers[0].resources.requests.memory (line 8): "200Mo" has the unknown unit "Mo"`,
		},
		"a limit below the request": {
			pod("", "requests: {cpu: 1}, limits: {cpu: 500m}", ""),
			in + `containers[0].resources.limits.cpu (line 8): 500m is less than what is requested`,
		},
		"a node selector for another architecture": {
			pod("architecture: intel", "", "nodeSelector: {kubernetes.io/arch: arm64}, "),
			in + `nodeSelector.kubernetes.io/arch (line 8): is arm64, but the component requires the architecture amd64`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := submitted([]byte(row.doc))
			requireFaults(t, err, []string{row.fault})
			_, err = descriptor.ParseStored([]byte(row.doc))
			require.NoError(t, err, "it was accepted before there was this rule")
			header, err := asked([]byte(row.doc))
			require.NoError(t, err, "the matchmaker answers all the same")
			require.Contains(t, strings.Join(problem.Texts(header.Warnings), "\n"), row.fault)
		})
	}
}

func TestManifestsThatMayNotWorkInTheirComponentAreWarnedOf(t *testing.T) {
	t.Parallel()
	app, err := submitted([]byte(pod("cpu: 500m, memory: 100M", "requests: {cpu: 1, memory: 200Mb}", "")))
	require.NoError(t, err)
	requireLines(t, []string{
		`components[0].manifests[0].manifest.spec.containers[0].resources.requests.memory (line 8): "200Mb" is no quantity that`,
		"components[0].requirements.cpu (line 8): is 500m, but the manifests ask for 1000m",
		"components[0].requirements.memory (line 8): is 100000000 bytes, but the manifests ask for 200000000",
	}, problem.Texts(app.Warnings))
}

func TestAJobGetsAmountsThatAClusterReads(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"200Mb": "200M", "1.5GB": "1.5G", "64 MiB": "64Mi", "2gi": "2Gi", "512kb": "512k", "100b": "100",
		"200M": "200M", "1e9": "1e9", "128974848000m": "128974848000m",
	} {
		doc := pod("", "requests: {memory: X}", "")
		app, err := submitted([]byte(strings.Replace(doc, "X", written, 1)))
		require.NoError(t, err, written)
		require.Regexp(t, `memory: "?`+want+`"?\n`, app.Components[0].Manifests[0].YAML, written)
	}
}
