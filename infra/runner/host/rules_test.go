package host

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store/storetest"
)

// TestAViolatedPolicyMovesItsComponent: a policy in the descriptor becomes a rule, the fleet's telemetry makes it fire,
// the host's own Alertmanager notifies the policy manager, and the component moves to a node without a violation.
func TestAViolatedPolicyMovesItsComponent(t *testing.T) {
	t.Parallel()
	o := options(newHome(t))
	o.Database = storetest.URL(t)
	h := start(t, o)
	text := strings.Replace(example(t), "policies:\n", "policies:\n      - security: medium\n", 1)
	require.Contains(t, text, "security: medium")
	var g group
	require.Equal(t, http.StatusCreated, ask(t, h.URL(), o.Home, "operator", "POST", "/jobmanager/groups", text, &g))
	available(t, h.URL(), o.Home, g.ID)
	require.Eventually(t, func() bool {
		files, err := filepath.Glob(filepath.Join(o.Home, "rules", "*.yaml"))
		return err == nil && len(files) > 0
	}, patience, 50*time.Millisecond, "its rules are in the home")

	before := nodeOf(t, h, o, g.ID, "web")
	body := `{"node": "` + before + `", "set": {"sca": "5"}}`
	require.Equal(t, http.StatusOK, ask(t, h.URL(), o.Home, "operator", "POST", "/fleet/set", body, nil))
	require.Eventually(t, func() bool { return nodeOf(t, h, o, g.ID, "web") != before }, patience, 50*time.Millisecond)
	available(t, h.URL(), o.Home, g.ID)
	require.Eventually(t, func() bool {
		var list []struct{ Status struct{ Phase string } }
		status := ask(t, h.URL(), o.Home, "viewer", "GET", "/polman/registry/api/v1/policies/", "", &list)
		for _, p := range list {
			if p.Status.Phase != "enforced" {
				return false
			}
		}
		return status == http.StatusOK && len(list) > 0
	}, patience, 50*time.Millisecond, "all policies hold again")
}

// nodeOf returns the node of the component, "" if it has none.
func nodeOf(t *testing.T, h *Host, o Options, app, component string) string {
	t.Helper()
	var jobs []struct {
		Type        string
		Instruction struct{ ComponentName string }
		Targets     struct {
			NodeName string `json:"node_name"`
		}
	}
	require.Equal(t, 200, ask(t, h.URL(), o.Home, "viewer", "GET", "/jobmanager/jobs?app="+app, "", &jobs))
	for _, j := range jobs {
		if j.Instruction.ComponentName == component && j.Type != "DeleteDeployment" {
			return j.Targets.NodeName
		}
	}
	return ""
}
