package submission_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/policy/admit"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/submission"
)

func TestAComposeFileGetsOfItsHostWhatTheSettingAllows(t *testing.T) {
	t.Parallel()
	as := func(role auth.Role) context.Context {
		return auth.With(t.Context(), auth.Principal{Subject: "alice", Roles: []auth.Role{role}})
	}
	document := []byte("components:\n- name: web\n  type: docker\n  manifests:\n" +
		"  - {name: c, manifest: {services: {a: {image: x, privileged: true, volumes: ['/etc:/etc']}}}}\n")
	_, err := submission.Read(as(auth.Admin), admit.Settings{}, document, false)
	var refused *problem.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, problem.Invalid, refused.Kind)
	require.Len(t, refused.Fields, 2)
	require.Equal(t, "components[0].manifests[0].manifest.services.a.privileged", refused.Fields[0].Path)
	require.Contains(t, refused.Fields[0].Detail, "COMPOSE_HOST_ACCESS")
	require.Equal(t, 5, refused.Fields[1].Line)

	for _, row := range []struct {
		setting, says string
		caller        auth.Role
	}{
		{"admin", "", auth.Admin},
		{"operator", "", auth.Admin},
		{"operator", "", auth.Operator},
		{"admin", "which needs the role admin", auth.Operator},
		{"operator", "which needs the role operator", auth.Viewer},
		{"none", "COMPOSE_HOST_ACCESS", auth.Admin},
	} {
		var s admit.Settings
		require.NoError(t, s.ComposeHostAccess.UnmarshalText([]byte(row.setting)))
		app, err := submission.Read(as(row.caller), s, document, true)
		if row.says == "" {
			require.NoError(t, err)
			require.Len(t, app.HostAccess, 2)
			continue
		}
		require.ErrorAs(t, err, &refused)
		require.Len(t, refused.Fields, 2)
		require.Contains(t, refused.Fields[0].Detail, row.says)
	}
	var g admit.Granted
	require.ErrorContains(t, g.UnmarshalText([]byte("true")), "none, admin, operator")
}
