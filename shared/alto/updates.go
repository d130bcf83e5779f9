package alto

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// Updates asks for updates of resources (RFC 8895), or changes what an open stream has.
type Updates struct {
	Add    []Substream // by their ids
	Remove []string    // ids
	All    bool        // an empty remove: all that there were
}

// Substream is one resource of a stream of updates.
type Substream struct {
	ID         string          `json:"id"`
	ResourceID string          `json:"resource"`
	Tag        string          `json:"tag,omitempty"`   // of the version that the client has
	Whole      bool            `json:"whole,omitempty"` // no patches are wanted
	Input      json.RawMessage `json:"input,omitempty"` // what the resource would be asked with
}

// UpdateControlEvent is what a stream says about itself.
type UpdateControlEvent struct {
	ControlURI  string   `json:"control-uri,omitempty"`
	Started     []string `json:"started,omitempty"`
	Stopped     []string `json:"stopped,omitempty"`
	Description string   `json:"description,omitempty"`
}

// substreamID has no dot: what follows one in the name of an event is the part of a resource.
var substreamID = regexp.MustCompile(`^[A-Za-z0-9\-:@_]{1,64}$`)

// ParseUpdates reads the request for a stream, which must add something, or one of its control.
func ParseUpdates(body []byte, control bool) (u Updates, fault *Error) {
	f, fault := parse(body)
	if fault != nil {
		return u, fault
	}
	if f.has("remove") && control {
		if u.Remove, fault = f.texts("remove"); fault != nil {
			return u, fault
		}
		u.All = len(u.Remove) == 0
	}
	if !f.has("add") {
		if control && f.has("remove") {
			return u, nil
		}
		return u, Missing("add")
	}
	add, fault := f.object("add")
	if fault != nil {
		return u, fault
	}
	for _, id := range slices.Sorted(maps.Keys(add.members)) {
		if !substreamID.MatchString(id) {
			return u, BadValue("add", id)
		}
		s, fault := add.substream(id)
		if fault != nil {
			return u, fault
		}
		u.Add = append(u.Add, s)
	}
	if len(u.Add) == 0 && !f.has("remove") {
		return u, BadValue("add", "{}")
	}
	return u, nil
}

func (f fields) substream(id string) (s Substream, fault *Error) {
	o, fault := f.object(id)
	if fault != nil {
		return s, fault
	}
	s.ID = id
	if o.has("input") {
		s.Input, _ = json.Marshal(o.members["input"]) // in the one form in which it is kept and compared
	}
	if s.ResourceID, fault = o.text("resource-id"); fault != nil {
		return s, fault
	}
	if o.has("tag") {
		if s.Tag, fault = o.text("tag"); fault != nil {
			return s, fault
		}
	}
	switch string(o.members["incremental-changes"]) {
	case "", "true":
	case "false":
		s.Whole = true
	default:
		return s, &Error{Code: InvalidFieldType, Field: o.at + "incremental-changes"}
	}
	return s, nil
}

// Below returns the error with its field below a path: what is wrong with an input is wrong in the request that has it.
func (e *Error) Below(path string) *Error {
	out := *e
	if out.Code == Syntax { // the request as a whole could be read
		out.Code, out.SyntaxError, out.Field = InvalidFieldType, "", ""
	}
	if out.Field != "" {
		path += "/"
	}
	out.Field = path + out.Field
	return &out
}

// Patch returns the merge patch (RFC 7396) that makes one document the other; none if they are equal. Neither may have members that
// are null. What is equal is not taken apart, so that a patch of a large map costs little.
func Patch(from, to []byte) (json.RawMessage, error) {
	if bytes.Equal(from, to) {
		return nil, nil
	}
	if !isObject(from) || !isObject(to) {
		return to, nil
	}
	var before, after map[string]json.RawMessage
	if err := json.Unmarshal(from, &before); err != nil {
		return nil, fmt.Errorf("read the former document: %w", err)
	}
	if err := json.Unmarshal(to, &after); err != nil {
		return nil, fmt.Errorf("read the present document: %w", err)
	}
	out := map[string]json.RawMessage{}
	for name := range before {
		if _, stays := after[name]; !stays {
			out[name] = json.RawMessage("null")
		}
	}
	for name, value := range after {
		former, was := before[name]
		if !was {
			out[name] = value
			continue
		}
		change, err := Patch(former, value)
		if err != nil {
			return nil, err
		}
		if change != nil {
			out[name] = change
		}
	}
	return json.Marshal(out)
}

func isObject(text []byte) bool { return len(text) > 0 && text[0] == '{' }
