package mdm

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/keyexpr"
)

// All selects what the bus says about the graph.
const All keyexpr.Expr = "mdm/**"

// Wish says which events a follower wants; what is empty wants all.
type Wish struct {
	Kind          string // entity or relation
	Types         []string
	EventType     string
	Connector     *uuid.UUID // does not hold back deletions, which name none
	ConnectorType string     // nor does this
	About         *uuid.UUID // an entity, and the relations that it is an end of
}

// Said is an event as followers get it.
type Said struct {
	Connector     *uuid.UUID      `json:"connector_edf_id,omitempty"`
	ConnectorType string          `json:"connector_type,omitempty"`
	Type          string          `json:"event_type"`
	Timestamp     float64         `json:"timestamp"`
	Payload       json.RawMessage `json:"payload"`
}

// Read returns the event that a value of the bus holds, if it is wanted. Of what is deleted it has the ids and the type.
func (w Wish) Read(v bus.Value) (Said, bool) {
	chunks := strings.Split(string(v.Key), "/")
	if len(chunks) < 4 || w.Kind != "" && w.Kind != chunks[1] || len(w.Types) > 0 && !slices.Contains(w.Types, chunks[2]) {
		return Said{}, false
	}
	if w.About != nil && !slices.Contains(chunks[3:], w.About.String()) {
		return Said{}, false
	}
	s := Said{Type: Delete, Timestamp: float64(v.At.UnixMilli()) / 1000}
	if v.Deleted {
		gone := map[string]string{"entity_type": chunks[2], "edf_id": chunks[3]}
		if len(chunks) == 5 {
			gone = map[string]string{"relation_type": chunks[2], "from_edf_id": chunks[3], "to_edf_id": chunks[4]}
		}
		s.Payload, _ = json.Marshal(gone) // texts always encode
	} else if json.Unmarshal(v.Payload, &s) != nil {
		return Said{}, false // somebody else has published below our key
	}
	switch {
	case w.EventType != "" && w.EventType != s.Type:
		return Said{}, false
	case !v.Deleted && w.ConnectorType != "" && w.ConnectorType != s.ConnectorType:
		return Said{}, false
	case !v.Deleted && w.Connector != nil && (s.Connector == nil || *w.Connector != *s.Connector):
		return Said{}, false
	}
	return s, true
}
