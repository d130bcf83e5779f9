package events

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/problem"
)

// MaxBytes bounds one event.
const MaxBytes = 1 << 20

// FromRequest reads the event of an HTTP request in binary or structured mode (CloudEvents HTTP binding 1.0.2). The
// error is Malformed or TooLarge; or Unavailable if the request breaks off, since the event may be fine, and on any
// other answer a Broker would give it up.
func FromRequest(r *http.Request) (cloudevents.Event, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBytes+1))
	if err != nil {
		return cloudevents.Event{}, problem.Wrap(problem.Unavailable, err, "the event broke off; send it again")
	}
	if len(body) > MaxBytes {
		return cloudevents.Event{}, problem.New(problem.TooLarge, "an event has at most %d bytes", MaxBytes)
	}
	e := cloudevents.New()
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media == cloudevents.ApplicationCloudEventsJSON {
		err = e.UnmarshalJSON(body)
	} else {
		err = fromHeaders(&e, r.Header, body)
	}
	if err == nil {
		err = e.Validate()
	}
	if err != nil {
		return cloudevents.Event{}, problem.Wrap(problem.Malformed, err, "this is not a CloudEvent: %v", err)
	}
	return e, nil
}

func fromHeaders(e *cloudevents.Event, h http.Header, body []byte) error {
	if v := h.Get("Ce-Specversion"); v != cloudevents.CloudEventsVersionV1 {
		return fmt.Errorf("specversion is %q, want %q", v, cloudevents.CloudEventsVersionV1)
	}
	for key, values := range h {
		name, isAttribute := strings.CutPrefix(strings.ToLower(key), "ce-")
		if !isAttribute || len(values) == 0 {
			continue
		}
		switch value := values[0]; name {
		case "specversion":
		case "id":
			e.SetID(value)
		case "source":
			e.SetSource(value)
		case "type":
			e.SetType(value)
		case "subject":
			e.SetSubject(value)
		case "dataschema":
			e.SetDataSchema(value)
		case "time":
			t, err := time.Parse(time.RFC3339Nano, value)
			if err != nil {
				return fmt.Errorf("time %q: %w", value, err)
			}
			e.SetTime(t)
		default:
			e.SetExtension(name, value)
		}
	}
	if len(body) == 0 {
		return e.Validate()
	}
	media := h.Get("Content-Type")
	if media == "" {
		media = cloudevents.ApplicationJSON
	}
	e.SetDataContentType(media)
	return e.SetData(media, body)
}
