package descriptor

import (
	"bytes"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/compose"
	"github.com/littoral-project/littoral/shared/problem"
)

// FuzzParse checks that no text causes a panic or an error without a kind, that the same text always gives the same
// result, and that accepted descriptors keep the promises of the types.
func FuzzParse(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, doc []byte) {
		app, err := Parse(doc, compose.Read)
		again, errAgain := Parse(bytes.Clone(doc), compose.Read)
		require.Equal(t, app, again)
		require.Equal(t, err, errAgain)
		if _, err := ParseHeader(doc, compose.Read); err != nil {
			require.NotEqual(t, problem.Internal, problem.KindOf(err))
		}
		if err != nil {
			require.Contains(t, []problem.Kind{problem.Malformed, problem.Invalid, problem.TooLarge}, problem.KindOf(err))
			return
		}
		require.True(t, app.Name == "" || isLabel(app.Name) && len(app.Name) <= maxApplicationName)
		require.NotEmpty(t, app.Components)
		seen := map[string]bool{}
		for i := range app.Components {
			c := &app.Components[i]
			require.True(t, isLabel(c.Name), "%q", c.Name)
			require.False(t, seen[c.Name])
			seen[c.Name] = true
			requireComponent(t, app, c)
		}
	})
}

func requireComponent(t *testing.T, app *appmodel.Application, c *appmodel.Component) {
	t.Helper()
	require.Contains(t, []string{appmodel.TypeKubernetes, appmodel.TypeDocker, appmodel.TypeMultiple}, c.Type)
	require.NotEmpty(t, c.Manifests)
	for _, m := range c.Manifests {
		require.NotEmpty(t, m.Name)
		var n yaml.Node
		require.NoError(t, yaml.Unmarshal([]byte(m.YAML), &n), "%s", m.YAML)
		require.Equal(t, m.Kind, scalar(n.Content[0], "kind"))
	}
	require.GreaterOrEqual(t, c.Requirements.CPUMilli, int64(0))
	require.GreaterOrEqual(t, c.Requirements.MemoryBytes, int64(0))
	require.NotEmpty(t, c.Replicas())
	for _, target := range c.Targets {
		require.NotEqual(t, appmodel.Target{Orchestrator: target.Orchestrator}, target)
	}
	if s := c.Scaling; s != nil {
		require.True(t, 1 <= s.MinReplicas && s.MinReplicas <= s.MaxReplicas && s.Step > 0)
	}
	for p := range app.Applying(c.Name) {
		require.NotEmpty(t, p.Remediation)
		require.NotEmpty(t, p.Kind)
	}
	level := app.SecurityLevel(c.Name)
	require.True(t, level >= 0 && level <= 100)
	performance, energy, security, _ := app.ScoreWeights()
	require.InDelta(t, 1, performance+energy+security, 1e-6)
	cpu, memory, free := app.NodeUsage(c.Name)
	require.True(t, cpu >= 0 && cpu <= 1 && memory >= 0 && memory <= 1 && free >= 0)
	if timeout, ok := app.LostTelemetry(c.Name); ok {
		require.Positive(t, timeout)
	}
}

// FuzzTree checks two assumptions: the weight is never below the number of nodes that the YAML library builds, and a
// value that is written as a manifest is read back unchanged.
func FuzzTree(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, doc []byte) {
		text, err := guard(doc)
		if err != nil {
			return
		}
		weight := weighYAML(text)
		decoder := yaml.NewDecoder(bytes.NewReader(text))
		built := 0
		for {
			var n yaml.Node
			if decode(decoder, &n) != nil {
				break
			}
			for _, root := range n.Content {
				built += count(root)
			}
		}
		require.LessOrEqual(t, built, weight, "%q", text)

		var faults problem.Faults
		roots, err := load(doc, &faults)
		if err != nil || !faults.Empty() {
			return
		}
		for _, root := range roots {
			want := plain(root)
			text, err := render(root)
			require.NoError(t, err)
			var n yaml.Node
			require.NoError(t, yaml.Unmarshal([]byte(text), &n), "%s", text)
			require.Equal(t, want, plain(n.Content[0]), "%s", text)
		}
	})
}

func count(n *yaml.Node) int {
	total := 1
	for _, child := range n.Content {
		total += count(child)
	}
	return total
}

func seed(f *testing.F) {
	f.Helper()
	samples := os.DirFS("../../test/contracts/descriptors")
	err := fs.WalkDir(samples, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		doc, err := fs.ReadFile(samples, path)
		f.Add(doc)
		return err
	})
	require.NoError(f, err)
	for _, row := range hostile() {
		if len(row.doc) < 1<<12 {
			f.Add([]byte(row.doc))
		}
	}
	for _, doc := range []string{
		valid,
		"components:\n- name: c\n  requirements: {cpu: 1, memory: 1Gi, nodelabel: {key: a, values: [b, c]}}\n",
		"components:\n- {name: c, manifests: [m], policies: [security: high, redeployOnLostTelemetry: 15m]}\n" +
			"manifests: [{name: m, manifest: {kind: Pod}}]\npolicies:\n- {type: scheduler, energy: 1}\n",
		"a: |\n  text\n\n  more\nb: >-\n  folded\n  text\nc: \"x\\ty\"\nd: 'it''s'\ne: |2\n    indented\n",
		"a: &a {b: 1}\nc: {<<: *a, d: !!str 5}\ne: [*a, ~, 1e3, 0x1f, 2001-01-01, yes]\n",
		"a:\n- - - b\n- ? c\n  : d\n- [e: f, {g}]\n# comment\n--- h # i\n...\n%YAML 1.1\n---\nj\n",
		`{"a": "\ud83d\ude00", "b": [1, -2.5e3, true, null, {}]}`,
	} {
		f.Add([]byte(doc))
	}
}
