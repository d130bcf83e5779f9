package mdm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/decode"
	"github.com/littoral-project/littoral/shared/problem"
)

// Event is the envelope of the contract.
type Event struct {
	Connector     uuid.UUID       `json:"connector_edf_id"`
	ConnectorType string          `json:"connector_type"`
	Type          string          `json:"event_type"` // upsert or delete
	Timestamp     float64         `json:"timestamp"`  // seconds since 1970
	Payload       json.RawMessage `json:"payload"`
}

// Types of events.
const (
	Upsert = "upsert"
	Delete = "delete"
)

// payload is that of an entity, or of a relation.
type payload struct {
	Ref        string     `json:"json_schema_ref"`
	ID         *uuid.UUID `json:"edf_id"`
	Identifier string     `json:"identifier"`
	From       *uuid.UUID `json:"from_edf_id"`
	To         *uuid.UUID `json:"to_edf_id"`
}

// Change is what an event says.
type Change struct {
	Event    Event
	Ref      Ref
	Delete   bool
	Relation bool
	ID       uuid.UUID

	Identifier string          // of an entity
	Properties json.RawMessage // of an entity: its attributes without those of the contract, as one object

	From, To uuid.UUID // of a relation
	At       time.Time
}

// milliseconds is the least timestamp that must be meant in milliseconds: as seconds it is in the year 5138.
const milliseconds = 1e11

// Parse reads one event, or a list of them. All faults are reported; those of a list have the number of the event in their path.
func Parse(body []byte) ([]Change, error) {
	var given []Event
	batch := bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("["))
	if batch {
		if err := decode.JSON(body, &given); err != nil {
			return nil, err
		}
	} else {
		var one Event
		if err := decode.JSON(body, &one); err != nil {
			return nil, err
		}
		given = []Event{one}
	}
	var faults problem.Faults
	switch {
	case len(given) == 0:
		faults.Add("", 0, "there is no event in the list")
	case len(given) > MaxBatch:
		return nil, problem.New(problem.TooLarge, "a batch has at most %d events, and this one %d", MaxBatch, len(given))
	}
	changes := make([]Change, 0, len(given))
	for i, e := range given {
		path := ""
		if batch {
			path = fmt.Sprintf("[%d].", i)
		}
		changes = append(changes, e.change(path, &faults))
	}
	return changes, faults.Err("the events are not accepted")
}

// change reads what the event says.
func (e Event) change(path string, faults *problem.Faults) Change {
	c := Change{Event: e}
	switch strings.ToLower(e.Type) {
	case Upsert, "insert":
		c.Event.Type = Upsert
	case Delete:
		c.Event.Type, c.Delete = Delete, true
	default:
		faults.Add(path+"event_type", 0, "is %q, and must be upsert or delete", problem.Brief(e.Type, 50))
	}
	if e.Connector == uuid.Nil {
		faults.Add(path+"connector_edf_id", 0, "is missing")
	}
	if !Name(e.ConnectorType) {
		faults.Add(path+"connector_type", 0, "must be a name of letters, digits, hyphens, underscores and dots, 63 at most")
	}
	c.At = e.at(path, faults)
	c.read(path+"payload", faults)
	return c
}

func (e Event) at(path string, faults *problem.Faults) time.Time {
	seconds := e.Timestamp
	if seconds >= milliseconds {
		seconds /= 1000
	}
	if seconds <= 0 || seconds >= milliseconds {
		faults.Add(path+"timestamp", 0, "must be a time in seconds since 1970")
		return time.Time{}
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9)).UTC().Truncate(time.Microsecond)
}

// read reads the payload: a relation has two ends, everything else is an entity.
func (c *Change) read(path string, faults *problem.Faults) {
	raw := c.Event.Payload
	var members map[string]json.RawMessage
	switch {
	case len(raw) > MaxPayload:
		faults.Add(path, 0, "has %d bytes, and at most %d are kept", len(raw), MaxPayload)
		return
	case json.Unmarshal(raw, &members) != nil || members == nil:
		faults.Add(path, 0, "must be an object")
		return
	}
	var p payload
	known := map[string]json.RawMessage{}
	for _, name := range contractual {
		if value, ok := members[name]; ok {
			known[name] = value
		}
	}
	head, err := json.Marshal(known)
	if err == nil {
		err = decode.JSON(head, &p)
	}
	if err != nil {
		for _, f := range fieldsOf(err) {
			faults.Add(path+"."+f.Path, 0, "%s", f.Detail)
		}
		return
	}
	ref, ok := ParseRef(p.Ref)
	if !ok {
		faults.Add(path+".json_schema_ref", 0, "is not of the form urn:organization:type:version")
		return
	}
	c.Ref = ref
	if c.Relation = p.From != nil || p.To != nil; c.Relation {
		c.readRelation(p, path, faults)
		return
	}
	c.readEntity(p, members, path, faults)
}

// contractual are the members of payloads that the contract defines; all others are attributes.
var contractual = []string{"json_schema_ref", "edf_id", "identifier", "from_edf_id", "to_edf_id"}

func (c *Change) readRelation(p payload, path string, faults *problem.Faults) {
	if p.From == nil {
		faults.Add(path+".from_edf_id", 0, "is missing")
		return
	}
	if p.To == nil {
		faults.Add(path+".to_edf_id", 0, "is missing")
		return
	}
	c.From, c.To = *p.From, *p.To
	c.ID = relationID(c.Ref.Type, c.From, c.To)
}

func (c *Change) readEntity(p payload, members map[string]json.RawMessage, path string, faults *problem.Faults) {
	switch {
	case p.ID != nil:
		c.ID = *p.ID
	case p.Identifier != "":
		c.ID = EntityID(c.Ref.Type, p.Identifier)
	default:
		faults.Add(path+".edf_id", 0, "is missing, and there is no identifier to derive it from")
	}
	if len(p.Identifier) > maxText || strings.ContainsRune(p.Identifier, 0) {
		faults.Add(path+".identifier", 0, "has more than %d bytes, or a NUL character", maxText)
	}
	c.Identifier = p.Identifier
	attributes := maps.Clone(members)
	for _, name := range contractual {
		delete(attributes, name)
	}
	for name := range attributes {
		if name == "" || len(name) > maxText || strings.ContainsRune(name, 0) {
			faults.Add(path, 0, "an attribute has no name, or one of more than %d bytes, or with a NUL character", maxText)
			return
		}
	}
	encoded, err := json.Marshal(attributes)
	if err != nil || bytes.Contains(encoded, []byte(`\u0000`)) {
		faults.Add(path, 0, "an attribute holds a NUL character, which cannot be stored")
		return
	}
	c.Properties = encoded
}

// fieldsOf are the faults that an error lists.
func fieldsOf(err error) []problem.Field {
	var e *problem.Error
	if errors.As(err, &e) && len(e.Fields) > 0 {
		return e.Fields
	}
	return []problem.Field{{Detail: err.Error()}}
}
