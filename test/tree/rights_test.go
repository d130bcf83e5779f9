package tree_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbac "k8s.io/api/rbac/v1"
)

// ofCalls are the verbs that calls of the Kubernetes API need, by their options.
var ofCalls = map[string]string{"Create": "create", "Update": "update", "Delete": "delete", "Patch": "patch", "Apply": "patch"}

// makes are folders whose code applies objects that may not be there, for which it may also create them.
var makes = []string{"shared/telemetry/rules/prometheusrule"}

// TestAFunctionMayAskForWhatItCalls: the rights of each function on the Kubernetes API are those of this table, and no function that has
// no token has any. Whoever changes a function's calls changes its rights and this.
func TestAFunctionMayAskForWhatItCalls(t *testing.T) {
	t.Parallel()
	const pingSources, triggers, promRules = "sources.knative.dev/pingsources", "eventing.knative.dev/triggers", "monitoring.coreos.com/prometheusrules"
	const works, clusters = "work.open-cluster-management.io/manifestworks", "cluster.open-cluster-management.io/managedclusters"
	want := map[string]map[string]string{
		"clock-pause":                  {pingSources: "list patch"},
		"outbox-follow":                {triggers: "list"},
		"telemetry-rule-create":        {promRules: "create patch"},
		"telemetry-rule-delete":        {promRules: "get delete"},
		"telemetry-rule-list":          {promRules: "list"},
		"deploymentmanager-deploy-ocm": {works: "get create update delete", clusters: "get"},
		"deploymentmanager-sync-ocm":   {works: "get list create update delete", clusters: "get list"},
		"clusterlink-link":             {works: "get create update delete", clusters: "get"},
		"clusterlink-sync":             {works: "get list create update delete", clusters: "get list"},
	}
	rules := map[string][]rbac.PolicyRule{}
	allowed := map[string]map[string]string{}
	eachBuilt(t, root+"/infra/base", func(name string, object struct{ Rules []rbac.PolicyRule }) {
		rules[strings.TrimPrefix(name[strings.Index(name, " ")+1:], "littoral-")] = object.Rules
	}, "Role", "ClusterRole")
	eachBuilt(t, root+"/infra/base", func(_ string, object struct {
		RoleRef  struct{ Name string }
		Subjects []rbac.Subject
	},
	) {
		require.Len(t, object.Subjects, 1)
		name := object.Subjects[0].Name
		require.Equal(t, name, strings.TrimPrefix(object.RoleRef.Name, "littoral-"), "a role is one function's")
		require.True(t, entries(t)[name].Spec.Kubernetes, "%s has no token", name)
		allowed[name] = map[string]string{}
		for _, rule := range rules[name] {
			for _, resource := range rule.Resources {
				allowed[name][rule.APIGroups[0]+"/"+resource] = strings.Join(rule.Verbs, " ")
			}
		}
	}, "RoleBinding", "ClusterRoleBinding")
	require.Equal(t, want, allowed)
	for folder, functions := range map[string][]string{
		"shared/telemetry/rules/prometheusrule": {"telemetry-rule-create", "telemetry-rule-delete", "telemetry-rule-list"},
		"shared/orchestrator/ocm":               {"deploymentmanager-sync-ocm"},
		"functions/clock/pause":                 {"clock-pause"},
		"functions/outbox/follow":               {"outbox-follow"},
	} {
		var may []string
		for _, function := range functions {
			for _, verbs := range want[function] {
				may = append(may, strings.Fields(verbs)...)
			}
		}
		may = slices.DeleteFunc(may, func(verb string) bool { return verb == "get" || verb == "list" })
		slices.Sort(may)
		require.ElementsMatch(t, slices.Compact(may), writesOf(t, folder), "what the code of %s calls, and who may do it", folder)
	}
}

// writesOf lists the verbs of calls with options of the Kubernetes API in the folder's code: those that change something.
func writesOf(t *testing.T, folder string) []string {
	t.Helper()
	verbs := map[string]bool{}
	sources, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	require.NoError(t, err)
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, is := selector.X.(*ast.Ident); is && x.Name == "metav1" {
				if of, found := strings.CutSuffix(selector.Sel.Name, "Options"); found {
					if verb := ofCalls[of]; verb != "" {
						verbs[verb] = true
					}
					if of == "Apply" && slices.Contains(makes, folder) {
						verbs["create"] = true
					}
				}
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(verbs))
}
