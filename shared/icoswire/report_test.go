package icoswire_test

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/icoswire"
	"github.com/littoral-project/littoral/shared/job"
)

func command(t *testing.T, text string) job.Report {
	t.Helper()
	var r icoswire.Report
	require.NoError(t, json.Unmarshal([]byte(text), &r))
	return r.Command()
}

func TestReport_inBothFormats(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("4e8e9a52-6f4b-4a58-8d3b-0f7a0d2f4c11")
	want := job.Report{
		ID: id, OwnerID: "a", Type: job.Create, State: job.Finished, Epoch: 3,
		Deployed: [][]job.Content{{{YAML: "kind: X"}}}, At: job.Target{Orchestrator: "ocm", Cluster: "edge", Node: "n"},
	}
	require.Equal(t, want, command(t, `{"ID": "`+id.String()+`", "owner_id": "a", "type": 5, "state": 3, "epoch": 3,
		"manifests": [{"yamlString": "kind: X"}], "instruction": "of an older agent",
		"targets": [{"cluster_name": "edge", "node_name": "n", "orchestrator": "ocm"}]}`))
	want.Deployed[0][0].Name = "x"
	require.Equal(t, want, command(t, `{"id": "`+id.String()+`", "owner_id": "a", "type": "CreateDeployment", "state": "Finished",
		"epoch": 3, "instruction": {"contents": [{"name": "x", "yaml": "kind: X"}]},
		"targets": {"cluster_name": "edge", "node_name": "n", "orchestrator": "ocm"}}`))
}

func TestReport_ofOlderAgentsWhoSayOtherThings(t *testing.T) {
	t.Parallel()
	r := command(t, `{"state": "Finished", "manifests": "none", "targets": 7}`)
	require.Empty(t, r.Deployed)
	require.Zero(t, r.At)
}

// TestReport_ofARemoval: newer agents leave the state as it was listed, and say by a condition that it is done.
func TestReport_ofARemoval(t *testing.T) {
	t.Parallel()
	gone := `"type": "DeleteDeployment", "state": "Created", "resource": {"conditions": [{"type": "Deleted", "status": "True"}]}`
	require.Equal(t, job.Finished, command(t, "{"+gone+"}").State)
	require.Equal(t, job.Created, command(t, `{"type": "DeleteDeployment", "state": "Created"}`).State)
}
