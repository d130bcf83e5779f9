package peer

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/problem"
)

// What one controller tells another are CloudEvents in structured mode, each over a call of its own that the sender makes as
// itself. The same may be told again, under the same id.
const sources = "/controllers/" // followed by the name of a controller

// Head is the attributes of a received event, beside its data.
type Head struct {
	SpecVersion string `json:"specversion"`
	ID          string `json:"id"`
	Source      string `json:"source"`
	Type        string `json:"type"`
	Subject     string `json:"subject"`
}

// Event is a received CloudEvent in structured mode.
type Event[T any] struct {
	Head
	Data T `json:"data"`
}

// Check refuses what is no CloudEvent of a controller, or of none of the types.
func (h Head) Check(types ...string) error {
	var faults problem.Faults
	if h.SpecVersion != cloudevents.CloudEventsVersionV1 {
		faults.Add("specversion", 0, "is %q, want %q", problem.Brief(h.SpecVersion, 20), cloudevents.CloudEventsVersionV1)
	}
	if h.ID == "" {
		faults.Add("id", 0, "is missing")
	}
	if name, ok := strings.CutPrefix(h.Source, sources); !ok || name == "" {
		faults.Add("source", 0, "is not %sNAME, with the name of the controller", sources)
	}
	known := false
	for _, t := range types {
		known = known || h.Type == t
	}
	if !known {
		faults.Add("type", 0, "is not one of %s", strings.Join(types, ", "))
	}
	return faults.Err("this is no event between controllers")
}

// Sender returns the peer that the event comes from, if the subject of the caller's token is that of the peer. The error is
// Forbidden.
func (c *Client) Sender(h Head, subject string) (Peer, error) {
	return c.Caller(strings.TrimPrefix(h.Source, sources), subject)
}

// Tell sends the peer an event. One with the same id, which may be "" for one of its own, is the same event. out takes the
// answer, or is nil. The error is as of Call.
func (c *Client) Tell(ctx context.Context, p Peer, method, path, typ, id, subject string, data, out any) error {
	e, err := events.New(ctx, sources+c.Name(), typ, subject, data)
	if err != nil {
		return err
	}
	if id != "" {
		e.SetID(id)
	}
	body, err := e.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encode an event for %s: %w", p.Address, err)
	}
	return c.send(ctx, p, method, path, cloudevents.ApplicationCloudEventsJSON, body, out)
}

// Put is Tell with an event about what the path names.
func (c *Client) Put(ctx context.Context, p Peer, path, typ, id, subject string, data any) error {
	return c.Tell(ctx, p, http.MethodPut, path, typ, id, subject, data, nil)
}
