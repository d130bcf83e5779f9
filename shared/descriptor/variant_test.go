package descriptor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/problem"
)

// typed returns a descriptor with a component of each type, which has both variants where its type is multiple.
func typed(head string, types ...string) string {
	const pod = "{name: p, manifest: {apiVersion: v1, kind: Pod, metadata: {name: p}}}"
	const compose = "{name: c, manifest: {services: {web: {image: x}}}}"
	manifests := map[string]string{"kubernetes": pod, "docker": compose, "multiple": pod + ", " + compose}
	var b strings.Builder
	b.WriteString(head + "components:\n")
	for i, t := range types {
		own := strings.ReplaceAll(manifests[t], "name: p", "name: p"+string(rune('a'+i)))
		b.WriteString("- {name: " + string(rune('a'+i)) + ", type: " + t + ", manifests: [" + own + "]}\n")
	}
	return b.String()
}

func TestAComponentRunsOnTheEnginesThatItsTypeAndTheOthersLeaveIt(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		doc  string
		want [][]string
	}{
		"kubernetes":                             {typed("", "kubernetes"), [][]string{{"kubernetes"}}},
		"multiple alone":                         {typed("", "multiple"), [][]string{{"kubernetes", "docker"}}},
		"multiple beside kubernetes":             {typed("", "kubernetes", "multiple"), [][]string{{"kubernetes"}, {"kubernetes"}}},
		"multiple beside docker":                 {typed("", "multiple", "docker"), [][]string{{"docker"}, {"docker"}}},
		"multiple beside kubernetes, when mixed": {typed("mixedTypes: true\n", "kubernetes", "multiple"), [][]string{{"kubernetes"}, {"kubernetes", "docker"}}},
		"both, when mixed":                       {typed("mixedTypes: true\n", "kubernetes", "docker"), [][]string{{"kubernetes"}, {"docker"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app, err := submitted([]byte(row.doc))
			require.NoError(t, err)
			for i, want := range row.want {
				require.Equal(t, want, app.Engines(&app.Components[i]))
			}
		})
	}
}

func TestAVariantHasTheManifestsOfItsEngineOnly(t *testing.T) {
	t.Parallel()
	app, err := submitted([]byte(typed("", "multiple")))
	require.NoError(t, err)
	for engine, want := range map[string]string{"kubernetes": "pa", "docker": "c"} {
		own := app.Components[0].Variant(engine)
		require.Len(t, own, 1)
		require.Equal(t, want, own[0].Name)
	}
}

func TestMixedTypesAreRefusedUnlessAskedFor(t *testing.T) {
	t.Parallel()
	doc := []byte(typed("", "kubernetes", "docker"))
	_, err := submitted(doc)
	var refused *problem.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, problem.Invalid, refused.Kind)
	require.Len(t, refused.Fields, 1)
	require.Equal(t, "components[1].type", refused.Fields[0].Path)
	require.Equal(t, 3, refused.Fields[0].Line)
	require.Contains(t, refused.Fields[0].Detail, "mixedTypes: true")

	stored, err := descriptor.ParseStored(doc)
	require.NoError(t, err, "it was accepted before there was this rule")
	require.Equal(t, []string{"docker"}, stored.Engines(&stored.Components[1]))
	header, err := asked(doc)
	require.NoError(t, err, "the matchmaker answers all the same")
	require.Contains(t, strings.Join(problem.Texts(header.Warnings), "\n"), "mixed")
}

func TestAComponentWithNothingForTheEngineOfTheOthersIsRefused(t *testing.T) {
	t.Parallel()
	doc := strings.Replace(typed("", "docker", "kubernetes"), "type: kubernetes", "type: multiple", 1)
	_, err := submitted([]byte(doc))
	require.ErrorContains(t, err, "components[1].type (line 3): has manifests for kubernetes only, but other components are for docker")
}

func TestEveryFaultAndWarningIsInOneAnswer(t *testing.T) {
	t.Parallel()
	_, err := submitted([]byte(`name: x
colour: red
components:
- {name: a, type: kubernetes, manifests: [{name: p, manifest: {apiVersion: v1, kind: Service, metadata: {name: p}, spec: {ports: [{port: 0}]}}}], requirements: {cpu: much}}
- {name: b, type: docker, manifests: [{name: c, manifest: {services: {web: {image: x}}}}]}
`))
	var refused *problem.Error
	require.True(t, errors.As(err, &refused))
	paths := make([]string, len(refused.Fields))
	for i, f := range refused.Fields {
		paths[i] = f.Path
	}
	require.ElementsMatch(t, []string{
		"components[0].requirements.cpu", "components[1].type", "components[0].manifests[0].manifest.spec.ports[0].port",
	}, paths)
	require.Equal(t, []string{"colour (line 2): unknown key, ignored"}, problem.Texts(refused.Warnings))
}
