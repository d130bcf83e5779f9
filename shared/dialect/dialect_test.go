package dialect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/compose/reading"
	"github.com/littoral-project/littoral/shared/dialect"
	"github.com/littoral-project/littoral/shared/problem"
)

const hello = "name: hello\ncomponents: [{name: web, type: kubernetes, manifests: [" +
	"{name: web, manifest: {apiVersion: v1, kind: Pod, metadata: {name: web}}}]}]"

func TestEachReadingOfADescriptorSaysItsDialect(t *testing.T) {
	t.Parallel()
	stored := func(d appmodel.Dialect, document []byte, _ reading.Reader) (*appmodel.Application, error) {
		return dialect.DecodeStored(d, document)
	}
	for name, read := range map[string]func(appmodel.Dialect, []byte, reading.Reader) (*appmodel.Application, error){
		"submitted": dialect.Decode, "stored": stored, "asked about": dialect.DecodeHeader,
	} {
		app, err := read(appmodel.ICOS, []byte(hello), nil)
		require.NoError(t, err, name)
		require.Equal(t, appmodel.ICOS, app.Dialect, name)
		require.Equal(t, "web", app.Components[0].Name, name)
	}
}

func TestADialectThatNobodyReadsIsRefusedByName(t *testing.T) {
	t.Parallel()
	for _, d := range []appmodel.Dialect{"", "ICOS", "docker"} {
		_, err := dialect.Decode(d, []byte(hello), nil)
		var refused *problem.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, problem.Invalid, refused.Kind)
		require.Contains(t, refused.Detail, `"`+string(d)+`"`)
		require.Contains(t, refused.Detail, "known are codeco, icos")
	}
}

func TestADocumentSaysItsDialect(t *testing.T) {
	t.Parallel()
	require.Equal(t, appmodel.ICOS, dialect.Of([]byte(hello)))
	require.Equal(t, appmodel.CODECO, dialect.Of([]byte("apiVersion: codeco.he-codeco.eu/v1alpha1\nkind: CodecoApp\n")))
}
