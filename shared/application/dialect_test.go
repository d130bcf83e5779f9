package application_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/icoswire/jobgroup"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

func TestTheDialectIsStoredWithTheApplication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit(shop("a"), "")
	require.Equal(t, appmodel.ICOS, app.Dialect)
	require.Equal(t, appmodel.ICOS, w.Get(app.ID).Dialect)
	parsed, err := w.Get(app.ID).Parsed()
	require.NoError(t, err)
	require.Equal(t, appmodel.ICOS, parsed.Dialect)
}

const codeco = `apiVersion: codeco.he-codeco.eu/v1alpha1
kind: CodecoApp
metadata: {name: camera}
spec:
  appName: camera
  codecoapp-msspec: [{serviceName: front, podspec: {containers: [{name: c, image: "example.org/front:1"}]}}]
`

// TestNoDescriptorReplacesADocumentOfAnotherDialect: neither whole nor through the objects of a JobGroup.
func TestNoDescriptorReplacesADocumentOfAnotherDialect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _ := w.submit([]byte(codeco), "")
	require.Equal(t, appmodel.CODECO, w.Get(app.ID).Dialect)
	parsed, err := w.Get(app.ID).Parsed()
	require.NoError(t, err)
	require.Equal(t, "front", parsed.Components[0].Name)
	refused := func(id *uuid.UUID, body []byte) {
		t.Helper()
		change, err := jobgroup.ReadChange(id, body, applicationtest.Parse)
		require.NoError(t, err)
		err = w.Tx(func(ctx context.Context, tx *store.Tx) error {
			_, err := change.Put(ctx, tx, "", etag.Match{}, time.Minute)
			return err
		})
		var p *problem.Error
		require.ErrorAs(t, err, &p)
		require.Equal(t, problem.Conflict, p.Kind)
		require.Contains(t, p.Detail, "is written in codeco")
	}
	refused(&app.ID, bytes.ReplaceAll(shop("b"), []byte("name: shop"), []byte("name: camera")))
	refused(nil, fmt.Appendf(nil, `{"id": %q, "jobs": []}`, app.ID))
	require.Equal(t, codeco, w.Get(app.ID).Descriptor)
}
