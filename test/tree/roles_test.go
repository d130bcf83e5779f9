package tree_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/roles"
	"github.com/littoral-project/littoral/shared/store"
)

const grantsPage = "shared/roles/grants.sql"

// sequences are those of the migrations.
var sequences = regexp.MustCompile(`(?i)create sequence ([a-z_]+)`)

// TestEveryFunctionHasARole that uses the store, and nobody else has one, and what is granted is there.
func TestEveryFunctionHasARole(t *testing.T) {
	t.Parallel()
	text := page(t, grantsPage)
	var want, have []string
	for _, entry := range functions.Registry {
		if slices.Contains(entry.Spec.Secrets(), "DATABASE_URL") {
			want = append(want, store.Role(entry.Name))
		}
	}
	made := regexp.MustCompile(`(?m)^ {8}'([a-z0-9_]+)',?$`).FindAllStringSubmatch(text, -1)
	for _, m := range made {
		have = append(have, m[1])
	}
	require.ElementsMatch(t, append(want, roles.Every), have, "make grants")
	for _, entry := range functions.Registry {
		folder := "functions/" + strings.Replace(entry.Name, "-", "/", 1)
		if strings.Contains(source(t, folder), "env.DB") && !entry.Spec.Storeless {
			require.Contains(t, text, " to "+store.Role(entry.Name)+";\n", "no test runs what it does with the store")
		}
	}

	there := tables(t)
	files, err := filepath.Glob(filepath.Join(root, "shared/migrate/sql/*.sql"))
	require.NoError(t, err)
	for _, file := range files {
		sql, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range sequences.FindAllStringSubmatch(string(sql), -1) {
			there = append(there, m[1])
		}
	}
	there = append(there, "goose_db_version")
	lines := regexp.MustCompile(`(?m)^grant .* on (?:sequence )?([a-z_]+) to ([a-z0-9_]+);$`).FindAllStringSubmatch(text, -1)
	require.Len(t, lines, strings.Count(text, "\ngrant ")-1, "all but that of the role of all")
	for _, m := range lines {
		require.Contains(t, there, m[1], "make grants")
		require.Contains(t, have, m[2])
	}
}

// TestWhoAsksForTenantsIsConfined: functions that look who may see what are those that Postgres lets see nothing else.
func TestWhoAsksForTenantsIsConfined(t *testing.T) {
	t.Parallel()
	_, members, found := strings.Cut(page(t, "shared/roles/tenants.sql"), "grant "+roles.Tenant+" to\n")
	require.True(t, found)
	members, _, _ = strings.Cut(members, ";")
	have := regexp.MustCompile(`[a-z0-9_]+`).FindAllString(members, -1)
	var want []string
	for _, entry := range functions.Registry {
		if strings.Contains(source(t, "functions/"+strings.Replace(entry.Name, "-", "/", 1)), `/shared/telemetry/tenant"`) {
			want = append(want, store.Role(entry.Name))
		}
	}
	require.ElementsMatch(t, want, have)
}

// TestAFunctionHasAnAddressOfItsOwn with the component knative/roles, and the migration has them all.
func TestAFunctionHasAnAddressOfItsOwn(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	tree, err := filepath.Abs(root)
	require.NoError(t, err)
	tree, err = filepath.Rel(dir, tree)
	require.NoError(t, err)
	text := "resources: [" + tree + "/knative/overlays/lab]\ncomponents: [" + tree + "/knative/roles, " + tree + "/knative/without/console]\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	type object struct {
		Spec struct{ Template corev1.PodTemplateSpec }
	}
	mounted := ""
	functions := 0
	eachBuilt(t, dir, func(name string, o object) {
		if name == "Job migrate" {
			mounted = o.Spec.Template.Spec.Volumes[0].Secret.SecretName
		}
		for _, c := range o.Spec.Template.Spec.Containers {
			for _, v := range c.Env {
				if v.ValueFrom != nil && v.Name == "DATABASE_URL" {
					functions++
					require.Equal(t, "littoral-roles", v.ValueFrom.SecretKeyRef.Name)
					require.Equal(t, name, "Service "+v.ValueFrom.SecretKeyRef.Key)
				}
			}
		}
	}, "Service", "Job")
	require.Equal(t, "littoral-roles", mounted)
	require.Greater(t, functions, 200)
}

// TestRotationHasTwoPasswordsAtATime: Postgres knows the next one before a function has it, and the former one until all have the next.
func TestRotationHasTwoPasswordsAtATime(t *testing.T) {
	t.Parallel()
	require.Equal(t, "logins next postgres://a\nmigrate\nlogins use\ndelete pod -l serving.knative.dev/service\nmigrate\n"+
		"deploy: 2 functions have new passwords, and the former are refused\n", deploying(t, `
		out=$(mktemp -d); trap 'rm -r "$out"' EXIT
		printf '  %s\n' 'key: acm-status' 'name: littoral-roles' 'key: EVENT_KEY' 'name: littoral' 'key: bus-get' 'name: littoral-roles' >"$out/rendered.yaml"
		built() { :; }; logins() { echo "logins $*"; }; migrate() { echo migrate; }; secret() { echo postgres://a; }
		kn() { echo "$*" >&2; }; say() { echo "deploy: $*"; }
		rotate 2>&1`))
}
