package main

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/events"
)

// metadataEntity is one that all of these cases are about.
const (
	metadataEntity    = "1c2a0a5e-6f0c-3d4f-8f0e-5a0b8f6d7c11"
	metadataConnector = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
	metadataEvent     = `{"connector_edf_id": "` + metadataConnector + `", "connector_type": "bench", "event_type": "upsert", "timestamp": 1777888800,
	"payload": {"json_schema_ref": "urn:x:compute:1", "edf_id": "` + metadataEntity + `", "identifier": "edge-1", "cpu": 4}}`
	metadataSchema = `{"type": "object", "required": ["cpu"]}`
)

// metadataCases are of the metadata manager.
var metadataCases = map[string]maker{
	"mdm-home":           get("viewer", "/mdm"),
	"mdm-state":          get("viewer", "/mdm/state"),
	"mdm-type-list":      get("viewer", "/mdm/graph/entity/type"),
	"mdm-attribute-list": get("viewer", "/mdm/graph/entity/attributes/compute"),
	"mdm-connector-list": get("viewer", "/mdm/connectors"),
	"mdm-schema-list":    get("viewer", "/mdm/schemas"),
	"mdm-node-list":      get("viewer", "/mdm/nodes"),
	"mdm-observe":        tick,
	"mdm-datasets":       tick,
	"mdm-freshness":      tick,
	"mdm-object-apply": func(ctx context.Context, _ *scene) (ask, error) {
		body, err := event(ctx, events.ObjectAdded, "bench", map[string]any{
			"kind": "Pod", "metadata": map[string]any{"namespace": "default", "name": "bench"},
		})
		return ask{method: http.MethodPost, path: "/", body: body}, err
	},
	"mdm-follow": func(ctx context.Context, s *scene) (ask, error) {
		body, err := event(ctx, events.ApplicationPlaced, s.running.ID, events.Application{ID: uuid.MustParse(s.running.ID), Name: "running"})
		return ask{method: http.MethodPost, path: "/", body: body}, err
	},
	"mdm-publish": func(context.Context, *scene) (ask, error) {
		return ask{client: "operator", method: http.MethodPost, path: "/mdm/publish/event", body: []byte(metadataEvent)}, nil
	},
	"mdm-entity-find": func(context.Context, *scene) (ask, error) {
		return ask{client: "viewer", method: http.MethodPost, path: "/mdm/graph/entity/type/compute", body: []byte(`{"cpu": 4}`)}, nil
	},
	"mdm-cypher": func(context.Context, *scene) (ask, error) {
		return ask{client: "viewer", method: http.MethodPost, path: "/mdm/graph/cypher", body: []byte(`MATCH (n:compute) RETURN n LIMIT 1`)}, nil
	},
	"mdm-path": func(ctx context.Context, s *scene) (ask, error) {
		err := s.system.call(ctx, "operator", http.MethodPost, "/mdm/publish/event", []byte(metadataEvent), nil)
		return ask{client: "viewer", method: http.MethodGet, path: "/mdm/graph/path/" + metadataEntity}, err
	},
	"mdm-clean": func(context.Context, *scene) (ask, error) {
		return ask{client: "admin", method: http.MethodDelete, path: "/mdm/clean", header: http.Header{"X-Confirm": {"clean"}}}, nil
	},
	"mdm-connector-put": func(context.Context, *scene) (ask, error) {
		return ask{client: "operator", method: http.MethodPut, path: "/mdm/connectors/" + metadataConnector, body: []byte(`{"type": "bench"}`)}, nil
	},
	"mdm-connector-delete": func(ctx context.Context, s *scene) (ask, error) {
		err := s.system.call(ctx, "operator", http.MethodPost, "/mdm/publish/event", []byte(metadataEvent), nil)
		return ask{client: "operator", method: http.MethodDelete, path: "/mdm/connectors/" + metadataConnector}, err
	},
	"mdm-schema-put": func(context.Context, *scene) (ask, error) {
		return ask{client: "operator", method: http.MethodPut, path: "/mdm/schemas/x/compute/1", body: []byte(metadataSchema)}, nil
	},
	"mdm-schema-get":    schemaCase("viewer", http.MethodGet),
	"mdm-schema-delete": schemaCase("operator", http.MethodDelete),
	"mdm-stream":        get("viewer", "/mdm/events/sse"),
}

// schemaCase is about a schema that is there.
func schemaCase(client, method string) maker {
	return func(ctx context.Context, s *scene) (ask, error) {
		err := s.system.call(ctx, "operator", http.MethodPut, "/mdm/schemas/x/compute/1", []byte(metadataSchema), nil)
		return ask{client: client, method: method, path: "/mdm/schemas/x/compute/1"}, err
	}
}
