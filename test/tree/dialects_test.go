package tree_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// spoken are types of the domain that read or write their own JSON, and why: each is a value, and the same wherever it is
// stored or sent. The forms in which applications, jobs and policies are sent belong to their dialect (shared/icoswire).
var spoken = map[string]string{
	"shared/job.Remediation":           "its names stand in descriptors and policies, which are stored",
	"shared/topology.Measure":          "a number, or nothing",
	"shared/policy/registry.EventType": "two spellings of one name",
	"shared/policy/registry.Spec":      "part of the language of policies, which is stored",
	"shared/policy/registry.Subject":   "part of the language of policies, which is stored",
	"shared/policy/registry.Variables": "part of the language of policies, which is stored",
	"shared/policy/lifecycle.Document": "a descriptor, as text or as the object",
	"shared/policy/admit.Granted":      "a setting",
	"shared/policy/preview.Step":       "a duration",
}

var encodes = regexp.MustCompile(`^(Unm|M)arshal(JSON|Text)$`)

// TestTheDomainKnowsNoWireForm: what agents and clients send and are answered is the business of shared/icoswire.
func TestTheDomainKnowsNoWireForm(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, folder := range domain {
		for _, file := range parsed(t, folder) {
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Recv == nil || !encodes.MatchString(f.Name.Name) {
					continue
				}
				name := folder + "." + receiver(f)
				require.Contains(t, spoken, name, "%s: a form that is sent belongs to shared/icoswire", f.Name.Name)
				used[name] = true
			}
			for _, i := range file.Imports {
				require.False(t, below(strings.Trim(i.Path.Value, `"`), module+"/shared/icoswire"), folder)
			}
		}
	}
	for name := range spoken {
		require.True(t, used[name], "%s has no JSON of its own any more: remove it from the list", name)
	}
}

func receiver(f *ast.FuncDecl) string {
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if name, ok := typ.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// parsed are the folder's own files without tests.
func parsed(t *testing.T, folder string) (list []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		list = append(list, file)
	}
	return list
}

// labelled finds a label or mark of a dialect that is written out.
var labelled = regexp.MustCompile(`^"(icos_(controller_id|agent_id|cluster_id|host_id|host_name|app_name|app_instance|app_component)|[a-z]+\.icos\.eu/[a-z]+)"$`)

// claims are where icos_agent_id is the claim of a token, or a parameter of the query.
var claims = []string{"shared/auth", "functions/jobmanager/job-executable", "infra/runner/issuer"}

// TestLabelsOfDialectsAreInOnePlace: only shared/label writes out what objects and series are labelled with.
func TestLabelsOfDialectsAreInOnePlace(t *testing.T) {
	t.Parallel()
	for _, p := range ours(t, "functions", "shared", "infra") {
		if p.folder() == "shared/label" || slices.Contains(claims, p.folder()) {
			continue
		}
		for _, file := range parsed(t, p.folder()) {
			ast.Inspect(file, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					require.False(t, labelled.MatchString(l.Value), "%s writes %s: use shared/label", p.folder(), l.Value)
				}
				return true
			})
		}
	}
}
