package tree_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/function"
)

// folders returns the function folders by the function's name: jobmanager-job-get -> functions/jobmanager/job-get.
func folders(t testing.TB) map[string]string {
	t.Helper()
	found, err := filepath.Glob(root + "/functions/*/*/function.go")
	require.NoError(t, err)
	byName := map[string]string{}
	for _, file := range found {
		dir := filepath.Dir(file)
		byName[filepath.Base(filepath.Dir(dir))+"-"+filepath.Base(dir)] = filepath.ToSlash(strings.TrimPrefix(dir, root+"/"))
	}
	require.NotEmpty(t, byName)
	return byName
}

// entries returns the registry by the function's name.
func entries(t testing.TB) map[string]function.Entry {
	t.Helper()
	byName := map[string]function.Entry{}
	for main, entry := range functions.Registry {
		require.Equal(t, module+"/functions/cmd/"+entry.Name, main)
		byName[entry.Name] = entry
	}
	return byName
}

// service is the fields of a Knative Service that the checks read.
type service struct {
	Kind     string
	Metadata struct {
		Name        string
		Labels      map[string]string
		Annotations map[string]string
	}
	Spec struct {
		Template struct {
			Spec struct {
				TimeoutSeconds       int64
				ContainerConcurrency int64
				ServiceAccountName   string
				Containers           []struct{ Image string }
			}
		}
	}
}

// TestLimitsComeFromTheClass: a class is the budget of many functions, and one that it does not fit is named here.
func TestLimitsComeFromTheClass(t *testing.T) {
	t.Parallel()
	var apart []string
	for name, entry := range entries(t) {
		class := function.Spec{Class: entry.Spec.Class, Stream: entry.Spec.Stream}
		if entry.Spec.Timeout != class.Limits().Timeout {
			apart = append(apart, name)
		}
	}
	require.ElementsMatch(t, []string{"jobmanager-archive", "deploymentmanager-sync-kubernetes", "deploymentmanager-sync-nuvla", "deploymentmanager-sync-ocm", "metricsexport-fit"}, apart,
		"have a timeout of their own")
}

// TestEveryFunctionIsWhole: each function has a folder, a main, a registry entry and a Service, and none of these
// exists without a folder. test/contracts tests its behaviour, at least in the tests generated from the registry.
func TestEveryFunctionIsWhole(t *testing.T) {
	t.Parallel()
	names := slices.Sorted(maps.Keys(folders(t)))
	require.Equal(t, names, slices.Sorted(maps.Keys(entries(t))), "the registry is not that of the folders: make generate")
	for what, pattern := range map[string]string{"mains": "functions/cmd/*/main.go", "Services": "knative/base/*-*.yaml"} {
		files, err := filepath.Glob(root + "/" + pattern)
		require.NoError(t, err)
		var have []string
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".yaml")
			if name == "main.go" {
				name = filepath.Base(filepath.Dir(file))
			}
			have = append(have, name)
		}
		require.ElementsMatch(t, names, have, "the %s are not those of the folders: make generate", what)
	}
	kustomization, err := os.ReadFile(root + "/knative/base/kustomization.yaml")
	require.NoError(t, err)
	accounts, err := os.ReadFile(root + "/infra/base/serviceaccounts.yaml")
	require.NoError(t, err)
	tokens, err := os.ReadFile(root + "/infra/base/tokens.yaml")
	require.NoError(t, err)
	for name, entry := range entries(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(root + "/knative/base/" + name + ".yaml")
			require.NoError(t, err)
			var s service
			require.NoError(t, yaml.Unmarshal(text, &s))
			require.Equal(t, "Service", s.Kind)
			require.Equal(t, name, s.Metadata.Name)
			require.Equal(t, "ko://"+module+"/functions/cmd/"+name, s.Spec.Template.Spec.Containers[0].Image)
			require.GreaterOrEqual(t, s.Spec.Template.Spec.TimeoutSeconds, int64((time.Minute + entry.Spec.Timeout).Seconds()),
				"Knative counts the start, too")
			require.Equal(t, entry.Spec.Concurrency, s.Spec.Template.Spec.ContainerConcurrency)
			require.Equal(t, strings.Join(entry.Spec.Patterns(), "\n"), s.Metadata.Annotations["littoral.dev/routes"])
			if len(entry.Spec.Routes) == 0 {
				require.Equal(t, "cluster-local", s.Metadata.Labels["networking.knative.dev/visibility"], "only routes are public")
			}
			require.Contains(t, string(kustomization), "- "+name+".yaml\n")
			require.LessOrEqual(t, len(name), 40)
			require.Equal(t, name, s.Spec.Template.Spec.ServiceAccountName, "it is nobody else")
			require.Contains(t, string(accounts), "\n  name: "+name+"\n", "infra/base/serviceaccounts.yaml says who it is")
			token := "name: kubernetes-" + name + "\n"
			require.Equal(t, entry.Spec.Kubernetes, strings.Contains(string(text), token), "who is given a token")
			require.Equal(t, strings.Count(string(text), token), strings.Count(string(text), "name: kubernetes-"), "it is given no other")
			require.Equal(t, entry.Spec.Kubernetes, strings.Contains(string(tokens), "\n  "+token))
			require.True(t, len(entry.Spec.Routes) > 0 || len(entry.Spec.Consumes) > 0, "nothing can wake it")
		})
	}
}

// TestEveryComponentIsListed: functions/components.txt names the folders that "make new-function" allows.
func TestEveryComponentIsListed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(root + "/functions/components.txt")
	require.NoError(t, err)
	for _, dir := range folders(t) {
		component := strings.Split(dir, "/")[1]
		require.Contains(t, string(text), "\n"+component+" ", "functions/components.txt does not say what %s does", component)
	}
}

// TestNoRouteIsServedTwice: all functions share one base URL.
func TestNoRouteIsServedTwice(t *testing.T) {
	t.Parallel()
	owner := map[string]string{}
	for name, entry := range entries(t) {
		for _, route := range entry.Spec.Patterns() {
			require.Empty(t, owner[route], "%s: %s serves it too", route, name)
			owner[route] = name
		}
	}
}

// TestGeneratedFilesAreCurrent runs the generators on a copy of their input.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	t.Parallel()
	bin, work := t.TempDir(), t.TempDir()
	for _, dir := range append(slices.Collect(maps.Values(folders(t))), "knative/base", "knative/roles/functions", "infra/base") {
		require.NoError(t, os.MkdirAll(filepath.Join(work, dir), 0o755))
	}
	for _, dir := range folders(t) {
		text, err := os.ReadFile(filepath.Join(root, dir, "function.go"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(work, dir, "function.go"), text, 0o600))
	}
	_, err := run("go", "build", "-o", bin, "./scripts/gen/registry", "./scripts/gen/services")
	require.NoError(t, err)
	for _, generator := range []string{"registry", "services"} {
		command := exec.Command(filepath.Join(bin, generator))
		command.Dir = work
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	for _, pattern := range []string{
		"functions/functions_gen.go", "functions/cmd/*/main.go", "knative/base/*.yaml", "knative/watches/*/*.yaml",
		"knative/httproute/routes/routes.yaml", "knative/gateway/routes.txt",
		"infra/base/egress.yaml", "knative/roles/functions/kustomization.yaml",
	} {
		want, have := contents(t, work, pattern), contents(t, root, pattern)
		require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(have)), "make generate")
		for name := range want {
			require.Equal(t, want[name], have[name], "%s is not what its function declares: make generate", name)
		}
	}
}

// contents reads the files of dir that match the pattern.
func contents(t testing.TB, dir, pattern string) map[string]string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	require.NoError(t, err)
	require.NotEmpty(t, found, pattern)
	read := map[string]string{}
	for _, file := range found {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		name, err := filepath.Rel(dir, file)
		require.NoError(t, err)
		read[name] = string(text)
	}
	return read
}
