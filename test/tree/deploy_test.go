package tree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// deploying runs a line of shell after the functions of scripts/deploy/deploy, without a cluster, and returns its
// output.
func deploying(t *testing.T, line string) string {
	t.Helper()
	script, err := os.ReadFile(root + "/scripts/deploy/deploy")
	require.NoError(t, err)
	parts := regexp.MustCompile(`(?s)\n(functions=[^\n]*\n).*?\n(has\(\) .*\n)case `).FindStringSubmatch(string(script))
	require.NotNil(t, parts)
	out, err := run("bash", "-euo", "pipefail", "-c", "namespace=littoral\n"+parts[1]+parts[2]+line)
	require.NoError(t, err)
	return string(out)
}

// kept are the kinds that an upgrade never removes.
var kept = map[string]string{
	"namespace":        "has all the rest in it",
	"secret":           "is not in any manifest with what it holds",
	"statefulset.apps": "has data",

	"persistentvolumeclaim": "has data, too",
}

// TestAnUpgradeRemovesWhatItHasNoMore: it covers each kind in some overlay, except those that serve Postgres.
func TestAnUpgradeRemovesWhatItHasNoMore(t *testing.T) {
	t.Parallel()
	looked := strings.Fields(deploying(t, `
		known() { true; }; prune() { echo "$1"; }; kn() { true; }
		kubectl=fake; fake() { echo "${2/s./.}"; }
		outdated`))
	overlays, err := filepath.Glob(root + "/knative/overlays/*/kustomization.yaml")
	require.NoError(t, err)
	n := 0
	for _, file := range overlays {
		for _, b := range build(t, filepath.Dir(file)) {
			kind := strings.ToLower(strings.TrimSuffix(b.kind+"."+b.group, "."))
			if b.labels["littoral.dev/serves"] == "postgres" || kept[kind] != "" {
				continue
			}
			require.Contains(t, looked, kind, "%s has %s", file, b.name)
			n++
		}
	}
	require.Positive(t, n)
	for kind := range kept {
		require.NotContains(t, looked, kind)
	}
}

// TestWhatIsOutdated: objects of ours that are in the cluster and not in this version.
func TestWhatIsOutdated(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"configmap":                             "-n littoral delete configmap/former\n",
		"clusterrole.rbac.authorization.k8s.io": "delete clusterrole.rbac.authorization.k8s.io/former\n",
	} {
		require.Equal(t, want, deploying(t, `
			out=$(mktemp -d); trap 'rm -r "$out"' EXIT
			printf '%s\n' `+kind+`/present other/former >"$out/names"
			kubectl=fake
			fake() {
				case "$*" in
				*"get `+kind+` -l littoral.dev/stage,littoral.dev/serves!=postgres "*) printf '%s\n' `+kind+`/{present,former} ;;
				*) return 1 ;;
				esac
			}
			xargs() { shift && printf '%s %s\n' "$*" "$(cat)"; }
			prune `+kind))
	}
}

// TestWhatHasReadFormerSettingsIsRestarted: what was made before the ConfigMap, the Secret or a token last changed. A
// function may have gone to sleep since its pods were listed.
func TestWhatHasReadFormerSettingsIsRestarted(t *testing.T) {
	t.Parallel()
	require.Equal(t, "-n littoral delete pod --wait=false --ignore-not-found before\nrollout restart deployment gateway\n", deploying(t, `
		out=$(mktemp -d); trap 'rm -r "$out"' EXIT
		printf '%s\n' secret/kubernetes-clock configmap/littoral >"$out/names"
		kn() {
			case "$*" in
			"get configmap/littoral secret/littoral secret/kubernetes-clock "*) printf '%s\n' 2026-01-03T00:00:00Z 2026-01-02T00:00:00Z ;;
			"get pods -l serving.knative.dev/service "*) printf '%s\n' '2026-01-02T12:00:00Z before' '2026-01-04T00:00:00Z since' ;;
			"get pods -l app.kubernetes.io/name=gateway "*) echo '2026-01-02T12:00:00Z gateway' ;;
			"get pods -l app.kubernetes.io/name=issuer "*) echo '2026-01-04T00:00:00Z issuer' ;;
			rollout*) echo "$@" ;;
			*) return 1 ;;
			esac
		}
		xargs() { shift && printf '%s %s\n' "$*" "$(cat)"; }
		kubectl=kubectl
		renew`))
}

// TestARevisionThatNeverGotReadyIsMadeAgain: it would stay so, and a deployment of the same images would wait for it.
func TestARevisionThatNeverGotReadyIsMadeAgain(t *testing.T) {
	t.Parallel()
	lines := strings.Split(deploying(t, `
		kn() {
			case "$1" in
			get) printf '%s\n' "${@: -1}" >&2; ;;
			esac
		}
		discard 2>&1`), "\n")
	form, found := strings.CutPrefix(strings.Join(lines, "\n"), "go-template=")
	require.True(t, found, form)
	condition := func(of, status string) map[string]any { return map[string]any{"type": of, "status": status} }
	revision := func(name string, conditions ...any) map[string]any {
		r := map[string]any{"metadata": map[string]any{"name": name}}
		if conditions != nil {
			r["status"] = map[string]any{"conditions": conditions}
		}
		return r
	}
	parsed, err := template.New("").Parse(strings.TrimSpace(form))
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, parsed.Execute(&out, map[string]any{"items": []any{
		revision("asleep", condition("Active", "False"), condition("Ready", "True")),
		revision("failed", condition("Ready", "False")),
		revision("coming", condition("Ready", "Unknown")),
		revision("new"),
	}}))
	require.Equal(t, "failed\n", out.String())
	require.Equal(t, "delete revisions.serving.knative.dev failed worse --ignore-not-found --wait=false\n"+
		"deploy: deleted 2 revisions that never got ready\n", deploying(t, `
		kn() {
			case "$1" in
			get) printf '%s\n' failed worse ;;
			*) echo "$@" >&2 ;;
			esac
		}
		say() { echo "deploy: $*"; }
		discard 2>&1`))
}

// TestARouteIsServed: a route counts as served when each of its Gateways reports that for its present generation.
func TestARouteIsServed(t *testing.T) {
	t.Parallel()
	text := deploying(t, `kn() { printf %s "${@: -1}"; }; unattached any`)
	of, err := template.New("").Parse(strings.TrimPrefix(text, "go-template="))
	require.NoError(t, err)
	const (
		accepted = `{type: Accepted, status: "True", observedGeneration: 2}`
		resolved = `{type: ResolvedRefs, status: "True", observedGeneration: 2}`
		refused  = `{type: ResolvedRefs, status: "False", observedGeneration: 2, message: no such backend}`
		former   = `{type: ResolvedRefs, status: "True", observedGeneration: 1}`
		another  = `{type: PartiallyInvalid, status: "False", observedGeneration: 2}`
	)
	served := `{conditions: [` + accepted + `, ` + another + `, ` + resolved + `]}`
	for status, want := range map[string]string{
		`{}`:                                    "r: no Gateway has looked at it\n",
		`{status: {parents: []}}`:               "r: no Gateway has looked at it\n",
		`{status: {parents: [` + served + `]}}`: "",
		`{status: {parents: [` + served + `, ` + served + `]}}`:                                    "",
		`{status: {parents: [{conditions: []}]}}`:                                                  "r: Accepted is not known yet\n",
		`{status: {parents: [` + served + `, {conditions: [` + accepted + `]}]}}`:                  "r: ResolvedRefs is not known yet\n",
		`{status: {parents: [{conditions: [` + accepted + `, ` + former + `]}]}}`:                  "r: ResolvedRefs is not known yet\n",
		`{status: {parents: [` + served + `, {conditions: [` + accepted + `, ` + refused + `]}]}}`: "r: ResolvedRefs is False: no such backend\n",
	} {
		var route map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(status), &route))
		route["metadata"] = map[string]any{"name": "r", "generation": 2.0}
		var told strings.Builder
		require.NoError(t, of.Execute(&told, map[string]any{"items": []any{route}}))
		require.Equal(t, want, told.String(), status)
	}
}

// TestOneDeploymentAtATime: a second one would put its overlay and its names in place of those that the first is applying,
// and deleting by.
func TestOneDeploymentAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o700))
	}
	script, err := os.ReadFile(root + "/scripts/deploy/deploy")
	require.NoError(t, err)
	write("scripts/deploy/deploy", string(script))
	write("overlay/kustomization.yaml", "")
	write("kubectl", `#!/usr/bin/env bash
		[ "$1" = kustomize ] || exit 1
		echo rendered >>`+dir+`/told
		[ -n "${SECOND:-}" ] || SECOND=1 `+dir+`/scripts/deploy/deploy down >>`+dir+`/told 2>&1 || true
	`)
	deploy := func() string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", dir+"/scripts/deploy/deploy", "down")
		cmd.Env = append(os.Environ(), "OVERLAY=overlay", "KUBECTL="+dir+"/kubectl")
		require.Error(t, cmd.Run()) // there is no cluster
		told, err := os.ReadFile(filepath.Join(dir, "told"))
		require.NoError(t, err)
		return string(told)
	}
	const once = "rendered\ndeploy: another deployment runs in this folder; if none does, remove bin/deploy/busy\n"
	require.Equal(t, once, deploy())
	require.Equal(t, once+once, deploy(), "one that is over is in nobody's way")
}

// TestWhatTheClusterLacks is told before anything is built, and stands in nobody's way when all is removed. A type is one of
// its group, whichever version there is.
func TestWhatTheClusterLacks(t *testing.T) {
	t.Parallel()
	const want = "edge needs types that the cluster lacks: HTTPRoute.gateway.networking.k8s.io \n" +
		"kind: ConfigMap\nkind: Service\nremoved\n"
	require.Equal(t, want, deploying(t, `
		out=$(mktemp -d); trap 'rm -r "$out"' EXIT
		cat >"$out/rendered.yaml" <<-'YAML'
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
---
apiVersion: v1
data: {any: text}
kind: ConfigMap
---
apiVersion: serving.knative.dev/v1
kind: Service
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
YAML
		kubectl=fake
		overlay=edge patience=1s
		say() { echo "$*"; }
		die() { say "$@"; exit 1; }
		known() { false; }
		fake() {
			case "$*" in
			api-resources*)
				echo "configmaps cm v1 true ConfigMap"
				echo "services kservice,ksvc serving.knative.dev/v1beta1 true Service"
				return 1 # a group of others does not answer
				;;
			"delete --ignore-not-found "*) sed -n '/^kind/p' >"$out/deleted" ;;
			"get namespaces "* | "delete clusterroles,"*) ;;
			*) return 2 ;;
			esac
		}
		staged() { true; }; at_home() { true; }; same_broker() { echo "went on"; }
		(up) || true
		removed=$(down)
		cat "$out/deleted"
		echo "$removed"`))
}

// TestAnUpgradeLeavesTheNamespaceItsLabels: those of the overlay would be gone from the beginning of an upgrade until it
// applies them, or for good where it stops before.
func TestAnUpgradeLeavesTheNamespaceItsLabels(t *testing.T) {
	t.Parallel()
	require.Equal(t, "get namespace littoral\n", deploying(t, `
		out=$(mktemp -d); trap 'rm -r "$out"' EXIT
		for step in staged at_home lacking same_broker fit images; do eval "$step() { true; }"; done
		has() { false; }
		kubectl=fake
		fake() { echo "$*" >>"$out/told"; }
		secrets() { cat "$out/told"; exit; }
		up`))
}

// TestFunctionsAreUpdatedInBatches: each batch is ready before the next one is touched.
func TestFunctionsAreUpdatedInBatches(t *testing.T) {
	t.Parallel()
	batches := func(at string) string {
		return deploying(t, `
			out=bin kubectl=fake at_once=`+at+`
			fake() { echo "$*"; }
			ready() { echo "ready $*"; }
			die() { echo "$*"; exit; }
			roll $functions/a $functions/b $functions/c`)
	}
	require.Equal(t, `apply -l littoral.dev/stage=functions,app.kubernetes.io/name in (a,b) -f bin/resolved.yaml
ready service.serving.knative.dev service.serving.knative.dev/a service.serving.knative.dev/b
apply -l littoral.dev/stage=functions,app.kubernetes.io/name in (c) -f bin/resolved.yaml
ready service.serving.knative.dev service.serving.knative.dev/c
`, batches("2"))
	for _, wrong := range []string{"0", "-1", "many"} {
		require.Contains(t, batches(wrong), "BATCH is "+wrong)
	}
}

// TestADeploymentOutlastsAWebhook: a busy cluster restarts webhooks of Knative, which then refuse objects for a moment. What is
// refused for another reason ends the deployment.
func TestADeploymentOutlastsAWebhook(t *testing.T) {
	t.Parallel()
	applied := func(refusal, times string) string {
		return deploying(t, `
			out=$(mktemp -d) kubectl=fake
			fake() {
				echo x >>"$out/calls"
				echo "service a unchanged"
				[ $(wc -l <"$out/calls") -gt `+times+` ] || { echo "`+refusal+`" >&2; return 1; }
				echo "trigger b created"
			}
			sleep() { :; }
			say() { echo "$*"; }
			stage triggers 2>&1 || echo failed
			wc -l <"$out/calls"; rm -r "$out"`)
	}
	away := `failed calling webhook \"webhook.eventing.knative.dev\": no endpoints available`
	require.Equal(t, "a webhook of the cluster is away; waiting for it\ntrigger b created\n4\n", applied(away, "3"))
	require.Contains(t, applied(away, "100"), "failed\n61\n")
	require.Contains(t, applied("Forbidden", "1"), "Forbidden\nfailed\n1\n")
}

// TestFunctionsHaveTheirNameAsALabel: a function without it would be in no batch.
func TestFunctionsHaveTheirNameAsALabel(t *testing.T) {
	t.Parallel()
	type service struct {
		metav1.TypeMeta
		Metadata metav1.ObjectMeta
	}
	overlays, err := filepath.Glob(root + "/knative/overlays/*/kustomization.yaml")
	require.NoError(t, err)
	n := 0
	for _, file := range overlays {
		eachBuilt(t, filepath.Dir(file), func(_ string, s service) {
			if s.GroupVersionKind().Group == "serving.knative.dev" {
				require.Equal(t, s.Metadata.Name, s.Metadata.Labels["app.kubernetes.io/name"], file)
				n++
			}
		}, "Service")
	}
	require.Positive(t, n)
}
