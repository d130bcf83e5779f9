package admit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/policy/admit"
	"github.com/littoral-project/littoral/shared/problem"
)

func TestAComposeFileGetsOfItsHostWhatTheSettingAllows(t *testing.T) {
	t.Parallel()
	document := []byte("components:\n- name: web\n  type: docker\n  manifests:\n" +
		"  - {name: c, manifest: {services: {a: {image: x, privileged: true, volumes: ['/etc:/etc']}}}}\n")
	_, err := admit.Settings{}.Application(document, false)
	var refused *problem.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, problem.Invalid, refused.Kind)
	require.Len(t, refused.Fields, 2)
	require.Equal(t, "components[0].manifests[0].manifest.services.a.privileged", refused.Fields[0].Path)
	require.Contains(t, refused.Fields[0].Detail, "COMPOSE_HOST_ACCESS")
	require.Equal(t, 5, refused.Fields[1].Line)

	app, err := admit.Settings{ComposeHostAccess: true}.Application(document, true)
	require.NoError(t, err)
	require.Len(t, app.HostAccess, 2)
}
