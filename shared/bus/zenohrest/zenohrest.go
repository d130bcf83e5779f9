// Package zenohrest has the wire forms of Zenoh's REST plugin: how a path is a selector, and a value an element of an answer.
package zenohrest

import (
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/keyexpr"
	"github.com/littoral-project/littoral/shared/problem"
)

// Root is the path below which the bus is; what follows it is a key expression.
const Root = "/bus/"

// Names of server-sent events.
const (
	EventPut    = "PUT"
	EventDelete = "DELETE"
	// EventAnew is ours: the whole state follows, and what the subscriber knew beyond it is no more.
	EventAnew = "ANEW"
)

// storage stands behind the time of a value, where Zenoh has the identifier of the router, in hexadecimal: "littoral".
const storage = "6c6974746f72616c"

// Element is one value of an answer, and the data of a server-sent event.
type Element struct {
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"` // JSON as it is, text as a string, anything else as its base64; null when empty
	Encoding  string          `json:"encoding"`
	Timestamp string          `json:"timestamp"` // RFC 3339 with nanoseconds, "/", who gave it
}

// ElementOf returns the element of a value.
func ElementOf(v bus.Value) Element {
	return Element{
		Key: string(v.Key), Value: valueOf(v), Encoding: v.Encoding,
		Timestamp: v.At.UTC().Format("2006-01-02T15:04:05.000000000Z07:00") + "/" + storage,
	}
}

func valueOf(v bus.Value) json.RawMessage {
	if len(v.Payload) == 0 {
		return json.RawMessage("null")
	}
	media, _, _ := strings.Cut(v.Encoding, ";")
	switch strings.TrimSpace(media) {
	case "application/json", "text/json", "text/json5":
		if json.Valid(v.Payload) {
			return json.RawMessage(v.Payload)
		}
	case "text/plain", "zenoh/string":
		return quoted(string(v.Payload))
	}
	return quoted(base64.StdEncoding.EncodeToString(v.Payload))
}

func quoted(text string) json.RawMessage {
	raw, _ := json.Marshal(text) // a text always encodes
	return raw
}

// Payload returns the payload that a value of an element stands for.
func (e Element) Payload() ([]byte, error) {
	if string(e.Value) == "null" || len(e.Value) == 0 {
		return nil, nil
	}
	var text string
	media, _, _ := strings.Cut(e.Encoding, ";")
	switch strings.TrimSpace(media) {
	case "application/json", "text/json", "text/json5":
		return e.Value, nil // one that is no JSON has come as base64, and is a text now
	case "text/plain", "zenoh/string":
		err := json.Unmarshal(e.Value, &text)
		return []byte(text), err
	}
	if err := json.Unmarshal(e.Value, &text); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(text)
}

// Event is the name of the server-sent event for a value.
func Event(v bus.Value) string {
	if v.Deleted {
		return EventDelete
	}
	return EventPut
}

// Key returns the key that a path names; like Zenoh's storages, we keep no value under a wildcard. The error is Malformed.
func Key(r *http.Request) (keyexpr.Expr, error) {
	return parse(r, keyexpr.ParseKey)
}

// Selector is what a path and its query ask for.
type Selector struct {
	keyexpr.Expr
	Raw bool // the first value alone, as it is
}

// SelectorOf returns what the request asks for. The error is Malformed.
func SelectorOf(r *http.Request) (Selector, error) {
	e, err := parse(r, keyexpr.Parse)
	if err != nil {
		return Selector{}, err
	}
	s := Selector{Expr: e}
	for _, parameter := range strings.FieldsFunc(r.URL.RawQuery, func(c rune) bool { return c == ';' || c == '&' }) {
		name, _, _ := strings.Cut(parameter, "=")
		switch name {
		case "_raw":
			s.Raw = true
		case "_time":
			return s, problem.New(problem.Malformed, "_time is not answered: the last value of a key is kept, and none before it")
		}
	}
	return s, nil
}

func parse(r *http.Request, as func(string) (keyexpr.Expr, error)) (keyexpr.Expr, error) {
	text := strings.TrimPrefix(r.URL.Path, Root) // which is decoded
	if strings.ContainsRune(text, 0) {
		return "", problem.New(problem.Malformed, "a key holds no NUL character")
	}
	e, err := as(text)
	if err != nil {
		return "", problem.Wrap(problem.Malformed, err, "%v", err)
	}
	return e, nil
}

// Media returns the Content-Type of a raw value: its encoding where that is one.
func Media(encoding string) string {
	if media, parameters, err := mime.ParseMediaType(encoding); err == nil && strings.Contains(media, "/") {
		return mime.FormatMediaType(media, parameters)
	}
	return "application/octet-stream"
}

// First returns the media type that a caller names first in Accept, which is all that Zenoh looks at.
func First(r *http.Request) string {
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	media, _, _ := strings.Cut(first, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// Path is the path of a key or selection below the address of a router.
func Path(e keyexpr.Expr) string { return (&url.URL{Path: string(e)}).EscapedPath() }

// Time reads the time of an element; ok is false when it has none.
func (e Element) Time() (at time.Time, ok bool) {
	text, _, _ := strings.Cut(e.Timestamp, "/")
	at, err := time.Parse(time.RFC3339Nano, text)
	return at, err == nil
}
