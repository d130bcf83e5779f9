package events

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/trace"
)

// Extensions that events of ours carry.
const (
	ExtTraceParent = "traceparent"
	ExtTraceState  = "tracestate" // where there is one
	ExtSignature   = "littoralsig"
)

// attributed is implemented by data whose fields triggers filter on.
type attributed interface{ Attributes() map[string]string }

// New returns an event of the type about subject, in the trace of ctx. The id is a UUIDv7, so ids sort by age.
func New(ctx context.Context, source, typ, subject string, data any) (cloudevents.Event, error) {
	e := cloudevents.New()
	e.SetID(uuid.Must(uuid.NewV7()).String())
	e.SetSource(source)
	e.SetType(typ)
	e.SetSubject(subject)
	e.SetTime(time.Now().UTC())
	if parent := trace.Parent(ctx); parent != "" {
		e.SetExtension(ExtTraceParent, parent)
	}
	if state := trace.State(ctx); state != "" {
		e.SetExtension(ExtTraceState, state)
	}
	if a, ok := data.(attributed); ok {
		for k, v := range a.Attributes() {
			if v != "" {
				e.SetExtension(k, v)
			}
		}
	}
	if err := e.SetData(cloudevents.ApplicationJSON, data); err != nil {
		return e, fmt.Errorf("encode data of %s: %w", typ, err)
	}
	return e, e.Validate()
}

// Data decodes the event's data. The error is Malformed.
func Data[T any](e cloudevents.Event) (T, error) {
	var v T
	if err := json.Unmarshal(e.Data(), &v); err != nil {
		return v, problem.Wrap(problem.Malformed, fmt.Errorf("data of %s %s: %w", e.Type(), e.ID(), err),
			"the event cannot be read")
	}
	return v, nil
}

// ObjectLabel returns a label of the Kubernetes object that a watch tells of, "" when it has none. The error is Malformed.
func ObjectLabel(e cloudevents.Event, name string) (string, error) {
	object, err := Data[struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}](e)
	return object.Metadata.Labels[name], err
}

// TraceParent returns the traceparent the event carries, "" when none.
func TraceParent(e cloudevents.Event) string {
	s, _ := e.Extensions()[ExtTraceParent].(string)
	return s
}

// TraceState returns the tracestate the event carries, "" when none.
func TraceState(e cloudevents.Event) string {
	s, _ := e.Extensions()[ExtTraceState].(string)
	return s
}

// Sign adds the proof that the event comes from a holder of key: HMAC-SHA256 over its identity and data. An empty key
// leaves the event as it is.
func Sign(e *cloudevents.Event, key string) {
	if key != "" {
		e.SetExtension(ExtSignature, signature(*e, key))
	}
}

// Brief shortens an attribute for logs and messages: the sender of an event can make it any length.
func Brief(attribute string) string { return problem.Brief(attribute, 200) }

// Signed reports whether the event is signed with key; always true for an empty key, which means that the Broker itself
// is the trust boundary.
func Signed(e cloudevents.Event, key string) bool {
	if key == "" {
		return true
	}
	got, _ := e.Extensions()[ExtSignature].(string)
	return hmac.Equal([]byte(got), []byte(signature(e, key)))
}

func signature(e cloudevents.Event, key string) string {
	mac := hmac.New(sha256.New, []byte(key))
	for _, part := range []string{e.ID(), e.Source(), e.Type(), e.Subject(), string(e.Data())} {
		// The length keeps two fields from being shifted into each other.
		fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
