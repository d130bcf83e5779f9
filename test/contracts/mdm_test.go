package contracts_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
)

const mdmEvent = `{"connector_edf_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "connector_type": "test", "event_type": "upsert", "timestamp": 1777888800,
	"payload": {"json_schema_ref": "urn:x:compute:1", "edf_id": "1c2a0a5e-6f0c-3d4f-8f0e-5a0b8f6d7c11", "identifier": "edge-1", "cpu": 4}}`

// TestTheMetadataGraph goes through the contract once, at the paths of CODECO's own host.
func TestTheMetadataGraph(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type outcome struct{ Events, Applied, Unchanged int }
	require.Equal(t, outcome{1, 1, 0}, decode[outcome](t, w.operator.call(t, http.MethodPost, "/publish/event", mdmEvent).is(t, http.StatusOK)))
	require.Equal(t, outcome{1, 0, 1}, decode[outcome](t, w.operator.call(t, http.MethodPost, "/publish/event", mdmEvent).is(t, http.StatusOK)))
	w.viewer.call(t, http.MethodPost, "/publish/event", mdmEvent).is(t, http.StatusForbidden)

	require.Equal(t, []string{"compute"}, decode[[]string](t, w.viewer.get(t, "/graph/entity/type")))
	type entity struct {
		EDF  string `json:"edf_id"`
		Type string `json:"entity_type"`
		CPU  int
	}
	found := decode[[]entity](t, w.viewer.call(t, http.MethodPost, "/graph/entity/type/compute", `{"cpu": {"$gte": 4}}`).is(t, http.StatusOK))
	require.Equal(t, []entity{{"1c2a0a5e-6f0c-3d4f-8f0e-5a0b8f6d7c11", "compute", 4}}, found)
	type path struct {
		Nodes []struct{ Label string }
	}
	require.Len(t, decode[path](t, w.viewer.get(t, "/graph/path/1c2a0a5e-6f0c-3d4f-8f0e-5a0b8f6d7c11?hops=3")).Nodes, 1)

	schema := `{"type": "object", "required": ["cpu"], "properties": {"cpu": {"type": "integer", "minimum": 8}}}`
	w.operator.call(t, http.MethodPut, "/mdm/schemas/x/compute/1", schema).is(t, http.StatusOK)
	a := w.operator.call(t, http.MethodPost, "/publish/event", mdmEvent).is(t, http.StatusUnprocessableEntity)
	require.Contains(t, string(a.body), `"payload.cpu"`)
	w.operator.call(t, http.MethodPut, "/mdm/schemas/x/compute/2", `{"$ref": "file:///etc/passwd"}`).is(t, http.StatusUnprocessableEntity)
	w.operator.call(t, http.MethodDelete, "/mdm/schemas/x/compute/1", "").is(t, http.StatusNoContent)

	type connector struct {
		Type, Health string
		Refused      int
	}
	require.Equal(t, []connector{{"test", "Failing", 1}}, decode[[]connector](t, w.viewer.get(t, "/mdm/connectors")))

	admin := w.as(auth.Admin)
	admin.call(t, http.MethodDelete, "/mdm/clean", "").is(t, http.StatusPreconditionFailed)
	admin.call(t, http.MethodDelete, "/mdm/clean", "", "X-Confirm", "clean").is(t, http.StatusOK)
	require.Empty(t, decode[[]string](t, w.viewer.get(t, "/mdm/graph/entity/type")))
}
