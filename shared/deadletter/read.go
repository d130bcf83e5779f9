package deadletter

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/problem"
)

// Extensions that Knative adds to an event for a dead letter sink.
const (
	extDestination = "knativeerrordest"
	extCode        = "knativeerrorcode"
	extAnswer      = "knativeerrordata"

	knativePrefix = "knative" // prefix of all extensions that a Broker adds for itself
)

// read extracts from the event which consumer failed, how it failed, and the event as it was published.
func read(e cloudevents.Event) (Letter, error) {
	text := func(name string) string {
		if v, ok := e.Extensions()[name]; ok {
			return fmt.Sprint(v)
		}
		return ""
	}
	l := Letter{
		ID: uuid.Must(uuid.NewV7()), Consumer: consumer(text(extDestination)), EventID: e.ID(), Type: e.Type(),
		Source: e.Source(), Code: -1, Answer: answer(text(extAnswer)),
	}
	if code, err := strconv.Atoi(text(extCode)); err == nil {
		l.Code = code
	}
	original := e.Clone()
	for name := range e.Extensions() {
		if strings.HasPrefix(name, knativePrefix) || name == events.ExtSignature {
			original.SetExtension(name, nil) // nil removes it
		}
	}
	var err error
	l.Event, err = json.Marshal(original)
	return l, err
}

// consumer returns the name of the function at the address: the name of its Service, which is the first label of the
// host.
func consumer(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return "unknown"
	}
	name, _, _ := strings.Cut(u.Hostname(), ".")
	return name
}

// answer decodes the consumer's answer. The Broker truncates long ones, perhaps within a character.
func answer(encoded string) string {
	whole := encoded[:len(encoded)/4*4]
	body, err := base64.StdEncoding.DecodeString(whole)
	if err != nil {
		body = []byte(encoded) // an older Broker does not encode it
	}
	return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(string(body), ""), "\x00", ""))
}

// detail is a short form of the answer for people: the detail of a problem document, if it is one.
func (l *Letter) detail() string {
	var p struct{ Title, Detail string }
	if json.Unmarshal([]byte(l.Answer), &p) == nil && p.Detail != "" {
		return p.Detail
	}
	if line, _, _ := strings.Cut(l.Answer, "\n"); line != "" {
		return problem.Brief(line, 200)
	}
	return "it said nothing"
}

// about finds the application of the event, nil if there is none, and the component.
func about(e cloudevents.Event) (application *uuid.UUID, component string) {
	var data struct{ ID, ApplicationID, Instance, Component string }
	_ = json.Unmarshal(e.Data(), &data) // missing fields stay empty
	ids := []string{data.ApplicationID, data.Instance}
	if strings.Contains(e.Type(), ".application.") {
		ids = append(ids, data.ID)
	}
	for _, text := range ids {
		if id, err := uuid.Parse(text); err == nil {
			return &id, data.Component
		}
	}
	return nil, data.Component
}
