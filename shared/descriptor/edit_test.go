package descriptor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/descriptor"
)

// edit replaces the objects of one component.
func edit(document, component string, objects ...appmodel.Manifest) ([]byte, error) {
	e, err := descriptor.Open([]byte(document))
	if err != nil {
		return nil, err
	}
	if err := e.Replace(component, objects); err != nil {
		return nil, err
	}
	return e.Document()
}

// TestEdit: everything that Parse accepts can be edited, and only the objects of the component change.
func TestEdit(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]string{
		"inline": one("description: x"),
		"a descriptor behind its objects": "kind: Pod\nmetadata: {name: p}\n---\n---\nkind: Kustomization\napiVersion: v1\n" +
			"metadata: {name: k}\ncomponents: [x]\n---\ncomponents:\n- {name: c, type: kubernetes, manifests: [p, k]}\n",
		"the list of objects shared by an alias": `
components:
- {name: c, type: kubernetes, manifests: &m [{name: m, manifest: {kind: Pod}}]}
- {name: other, type: kubernetes, manifests: *m}
`,
		"an object shared by an alias": `
components:
- {name: c, type: kubernetes, manifests: [{name: m, manifest: &m {kind: Pod}}]}
- {name: other, type: kubernetes, manifests: [{name: m, manifest: *m}]}
`,
		"a component that inherits from the one": `
components:
- &c {name: c, type: kubernetes, requirements: {cpu: 1}, manifests: [{name: m, manifest: {kind: Pod}}]}
- {<<: *c, name: other}
`,
		"a component that inherits from another": `
components:
- &other {name: other, type: kubernetes, requirements: {cpu: 1}, manifests: [{name: m, manifest: {kind: Pod}}]}
- {<<: *other, name: c}
`,
		"JSON with characters beyond the basic plane": `{"description": "\ud83d\ude00 \\ud83d", "components": [
{"name": "c", "type": "kubernetes", "manifests": [{"name": "m", "manifest": {"kind": "Pod"}}]},
{"name": "other", "type": "kubernetes", "manifests": [{"name": "m", "manifest": {"kind": "Pod", "x": "\ud83d\ude00"}}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, err := descriptor.ParseStored([]byte(doc))
			require.NoError(t, err)
			edited, err := edit(
				doc, "c",
				appmodel.Manifest{Name: "m", YAML: "kind: Pod\nmetadata: &n {name: a}\nspec: *n\n"},
				appmodel.Manifest{YAML: `{"kind": "Secret", "metadata": {"name": "s"}, "x": "\ud83d\ude00"}`},
			)
			require.NoError(t, err)
			got, err := descriptor.ParseStored(edited)
			require.NoError(t, err, string(edited))
			for i := range want.Components {
				if c := &want.Components[i]; c.Name == "c" {
					c.Manifests = got.Components[i].Manifests
					require.Equal(t, []string{"m Pod", "s Secret"}, kinds(c))
					require.Equal(t, "kind: Pod\nmetadata:\n  name: a\nspec:\n  name: a\n", c.Manifests[0].YAML)
					require.Contains(t, c.Manifests[1].YAML, "U0001F600")
				}
			}
			got.Warnings, want.Warnings = nil, nil // they have line numbers
			require.Equal(t, want, got)
		})
	}
}

func TestEdit_refuses(t *testing.T) {
	t.Parallel()
	for want, row := range map[string]struct{ component, object string }{
		`has no component "x"`:               {"x", "kind: Pod"},
		`manifest "m" is not one object`:     {"c", "text"},
		`second time`:                        {"c", "kind: Pod\nkind: Job"},
		`"m": the descriptor cannot be read`: {"c", "{"},
	} {
		_, err := edit(one(""), row.component, appmodel.Manifest{Name: "m", YAML: row.object})
		require.ErrorContains(t, err, want)
	}
	_, err := edit(one(""), "c", appmodel.Manifest{Name: "m", YAML: "kind: Pod\n---\nkind: Job"})
	require.ErrorContains(t, err, `manifest "m" is not one object`)
}
